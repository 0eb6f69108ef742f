-- Attacks on networks that recognise by embeddings and on classifiers of texts; near and black-box ones on another device. 5 seconds.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops, nn, attacks = ms.ops, ms.nn, ms.armour.attacks

-- Ten persons, whose pictures are a pattern of theirs in noise; a network that tells them apart gives embeddings before its last layer.
local patterns = ops.rand { 10, 1, 6, 6 }
local function pictures(count)
  local who = ops.randint(0, 10, { count })
  return ops.gather(patterns, who, 0) * 0.6 + ops.rand { count, 1, 6, 6 } * 0.4, who:astype(ms.int32)
end

local faces = nn.SequentialCell(nn.Flatten(), nn.Dense(36, 32), nn.ReLU(), nn.Dense(32, 16))
do
  local head = nn.Dense(16, 10)
  local weights = faces:trainable_params()
  for _, p in ipairs(head:trainable_params()) do weights[#weights + 1] = p end
  local optimizer = nn.Adam(weights, 1e-2)
  local step = ms.value_and_grad(function(x, y) return ops.cross_entropy(head(faces(x)), y) end, nil, weights)
  for _ = 1, 80 do
    local _, gradients = step(pictures(64))
    optimizer(gradients)
  end
end

local x, who = pictures(20)
-- Of each person another picture, and a picture of the next person.
local function picture_of(persons) return ops.gather(patterns, persons:astype(ms.int64), 0) * 0.6 + ops.rand { 20, 1, 6, 6 } * 0.4 end
local own, others = picture_of(who), picture_of((who + 1) % 10)

t.test("pictures come to be taken for other persons, within the ball", function()
  for _, norm in ipairs { "inf", 2 } do
    local eps = norm == 2 and 2.0 or 0.3
    local attack = attacks.EmbeddingAttack(faces, "impersonation", { norm_level = norm, eps = eps, eps_iter = eps / 10 })
    local before, adv = attack:similarity(x, others), attack:generate(x, others)
    local after = attack:similarity(adv, others)
    assert(ops.mean(after):item() > 0.85 and ops.mean(before):item() < 0.5)
    assert(ops.all(ops.greater_equal(after, before)):item())
    local d = (adv - x):reshape { 20, 36 }
    assert(ops.amax(norm == 2 and ops.sqrt(ops.sum(d * d, 1)) or ops.abs(d)):item() <= eps * 1.0001)
    assert(ops.min(adv):item() >= 0 and ops.max(adv):item() <= 1)
  end
end)

t.test("persons are no longer recognised", function()
  local attack = attacks.EmbeddingAttack(faces, { mode = "dodging", eps = 0.2, threshold = 0.3 })
  local before = attack:similarity(x, own)
  local adv = attack:generate(x, own)
  assert(ops.mean(before):item() > 0.8)
  assert(ops.amax(attack:similarity(adv, own)):item() <= 0.3 + 1e-5)
  -- Steps end at the threshold: without one they lead further away.
  local further = attacks.EmbeddingAttack(faces, { mode = "dodging", eps = 0.2 }):generate(x, own)
  assert(ops.mean(attack:similarity(further, own)):item() < ops.mean(attack:similarity(adv, own)):item())
end)

t.test("only what the mask shows changes", function()
  local mask = ops.concat({ ops.ones { 1, 1, 2, 6 }, ops.zeros { 1, 1, 4, 6 } }, 2)
  for _, start in ipairs { false, true } do
    local options = { mask = mask, eps = 1.0, random_start = start, seed = start and 5 or nil }
    local attack = attacks.EmbeddingAttack(faces, "impersonation", options)
    local adv = attack:generate(x, others)
    t.equal(ops.amax(ops.abs((adv - x) * (1 - mask))):item(), 0.0)
    assert(ops.mean(attack:similarity(adv, others)):item() > ops.mean(attack:similarity(x, others)):item() + 0.2)
    t.equal(attack:generate(x, others):tolist(), adv:tolist())
  end
  t.fails({ "references must be pictures of shape" }, function() attacks.EmbeddingAttack(faces):generate(x, who) end)
  t.fails({ "mode must be one of" }, function() attacks.EmbeddingAttack(faces, "hiding") end)
  t.fails({ "threshold must be a cosine" }, function() attacks.EmbeddingAttack(faces, { threshold = 3 }) end)
end)

-- Words of praise and blame, each with near ones, some of another part of speech or less alike.
local words = { "good", "fine", "nice", "decently", "bad", "poor", "weak", "film", "movie", "the", "was", "plot", "story", "very", "so" }
local vectors = ms.tensor { { 1, 0, 0, 0 }, { 0.95, 0.25, 0, 0 }, { 0.9, 0.3, 0.1, 0 }, { 0.97, 0.1, 0, 0.1 }, { -1, 0, 0.2, 0 },
  { -0.95, 0.2, 0.2, 0 }, { -0.9, 0.1, 0.4, 0 }, { 0, 1, 0, 0 }, { 0, 0.95, 0.2, 0 }, { 0, 0, 1, 0 }, { 0, 0.1, 0.9, 0.1 },
  { 0, 0.5, 0, 1 },
  { 0, 0.6, 0.1, 0.9 }, { 0.2, 0, 0, 1 }, { 0.3, 0, 0, 0.95 } }
local parts = { good = "a", fine = "a", nice = "a", bad = "a", poor = "a", weak = "a", decently = "adv", very = "adv", so = "adv" }
-- How a text sounds: what each word adds.
local sounds = { good = 2, fine = 0.4, nice = 0.7, decently = 0.1, bad = -2, poor = -0.4, weak = -0.6, very = 0.3, so = -0.3, film = 0.1,
  movie = -0.1 }
local asked = 0
local function verdict(texts)
  local rows = {}
  for i, list in ipairs(texts) do
    local sum = -0.5
    for _, word in ipairs(list) do sum = sum + (sounds[word] or 0) end
    rows[i] = { -sum, sum }
  end
  asked = asked + #texts
  return ms.tensor(rows)
end
local function attack(options) return attacks.black.WordSubstitutionAttack(verdict, words, vectors, options) end

t.test("a word is replaced by the near one that changes the verdict and leaves the text most alike", function()
  asked = 0
  local found, texts, queries = attack({ min_text_similarity = 0.5, part_of = parts }):generate { "The film was good." }
  t.equal(found:tolist(), { true })
  t.equal(texts[1], "The film was fine.")
  t.equal(queries:item(), asked)
end)

t.test("parts of speech and how alike words are bind what may stand in a place", function()
  local one = { max_changes = 0.3, min_text_similarity = 0.3 }
  local _, texts = attack(one):generate { "The film was good." }
  t.equal(texts[1], "The film was decently.")
  one.part_of = function(word) return parts[word] end
  _, texts = attack(one):generate { "The film was GOOD." }
  t.equal(texts[1], "The film was FINE.")
  one.min_similarity = 0.999
  local found
  found, texts = attack(one):generate { "The film was good." }
  t.equal({ found:item(), texts[1] }, { false, "The film was good." })
  one.min_similarity, one.stop_words = 0.7, { "good" }
  found = attack(one):generate { "The film was good." }
  t.equal(found:item(), false)
  one.stop_words, one.min_text_similarity = nil, 1.01
  found = attack(one):generate { "The film was good." }
  t.equal(found:item(), false)
  one.min_text_similarity, one.text_similarity = 0.5, function(a, b) return #a == #b and 1.0 or 0.0 end
  found = attack(one):generate { "The film was good." }
  t.equal(found:item(), true)
end)

-- Three classes; a model that only knows some texts: the words that are left, and the logarithms of the probabilities.
local function chances(table_of)
  return function(texts)
    local rows = {}
    for i, list in ipairs(texts) do
      local p = table_of[table.concat(list, " ")] or table_of.other
      rows[i] = { math.log(p[1]), math.log(p[2]), math.log(p[3]) }
    end
    return ms.tensor(rows)
  end
end

t.test("the words that count most change first, those without which the verdict is another one the more", function()
  -- Without either word class 0 falls by 0.15; without "bad" class 1 comes before it, surer by 0.25.
  local known = { ["good bad"] = { 0.55, 0.25, 0.2 }, bad = { 0.4, 0.3, 0.3 }, good = { 0.4, 0.5, 0.1 }, other = { 0.5, 0.3, 0.2 } }
  local first = {}
  local function model(texts)
    if #texts > 1 or #texts[1] == 2 then
      for _, list in ipairs(texts) do first[#first + 1] = table.concat(list, " ") end
    end
    return chances(known)(texts)
  end
  local one = attacks.black.WordSubstitutionAttack(model, { "good", "fine", "bad", "poor" },
    ms.tensor { { 1.0, 0.0 }, { 0.9, 0.3 }, { -1.0, 0.0 }, { -0.9, 0.3 } }, { max_changes = 1.0, min_text_similarity = -1 })
  local function importance(without)
    local before, after = known["good bad"], known[without]
    local class_of = 1
    for k = 2, 3 do if after[k] > after[class_of] then class_of = k end end
    local falls = before[1] - after[1]
    return class_of == 1 and falls or falls + after[class_of] - before[class_of]
  end
  assert(importance "good" > importance "bad" + 0.2)
  local _, texts = one:generate { "good bad" }
  -- "bad" is the word that counts most; what is tried first is a text with another word in its place.
  t.equal({ first[4], texts[1] }, { "good poor", "good poor" })
end)

t.test("words of any alphabet, in quotes, in capitals, and texts of a word", function()
  local seen
  local function model(texts)
    seen = seen or texts[1]
    local rows = {}
    for i, list in ipairs(texts) do
      local sum = -0.5
      for _, word in ipairs(list) do sum = sum + ((word == "хорошо" or word == "good") and 1 or 0) end
      rows[i] = { -sum, sum }
    end
    return ms.tensor(rows)
  end
  local function changed(text, options)
    seen = nil
    local found, texts = attacks.black.WordSubstitutionAttack(model, { "Good", "fine", "хорошо", "неплохо" },
      ms.tensor { { 1.0, 0.0 }, { 0.9, 0.3 }, { -1.0, 0.0 }, { -0.9, 0.3 } }, options):generate { text }
    return texts[1], found:item()
  end
  t.equal({ changed "“Хорошо”, — сказал он." }, { "“неплохо”, — сказал он.", true })
  t.equal(seen, { "хорошо", "сказал", "он" })
  t.equal({ changed "It was 'good'" }, { "It was 'fine'", true })
  t.equal(changed "don't B2B — well-made (GOOD)…", "don't B2B — well-made (FINE)…")
  t.equal(seen, { "don't", "b2b", "well-made", "good" })
  t.equal({ changed "Good" }, { "Fine", true })
  t.equal({ changed("Good", { stop_words = { "GOOD" } }) }, { "Good", false })
  t.equal({ changed "" }, { "", false })
  t.equal({ changed "?!" }, { "?!", false })
  local made = attacks.black.WordSubstitutionAttack
  t.fails({ "words has 'good' twice, as numbers 1 and 2" }, made, model, { "good", "Good" }, ms.ones { 2, 2 })
  t.fails({ "words[2] must be a word, got 3" }, made, model, { "good", 3 }, ms.ones { 2, 2 })
  t.fails({ "embeddings hold nan" }, made, model, { "good", "fine" }, ms.full({ 2, 2 }, 0 / 0))
  t.fails({ "max_changes must be above 0" }, made, model, { "good", "fine" }, ms.ones { 2, 2 }, { max_changes = 0 })
  t.fails({ "text 1 is no text in UTF-8" }, changed, "good \xff")
  t.fails({ "word 2 of text 1 must be a string in UTF-8, got 7" }, changed, { "good", 7 })
  t.fails({ "text_similarity must give a number, got nil" }, changed, "so good", { text_similarity = function() end })
end)

t.test("several words change where one does not suffice, as many as may", function()
  local text = { "very", "good", "film", "was", "very", "nice" }
  t.equal(attack({ max_changes = 0.2 }):generate({ text }):item(), false)
  local found, texts = attack({ max_changes = 1.0, min_text_similarity = 0.5, part_of = parts }):generate { text, "Good, so good!" }
  t.equal(found:tolist()[1], true)
  local changed = 0
  for i, word in ipairs(texts[1]) do changed = changed + (word ~= text[i] and 1 or 0) end
  assert(changed >= 2 and changed <= 5, changed)
  assert(texts[2]:match "^%u%l+, so %l+!$", texts[2])
end)

t.test("labels, targets, budgets and mistakes", function()
  local found, texts, queries = attack():generate({ "The film was good.", "Bad plot" }, ms.tensor { 0, 0 })
  t.equal({ found:tolist()[1], texts[1], queries:tolist()[1] }, { true, "The film was good.", 1 })
  found = attack({ is_targeted = true, max_changes = 0.5, min_text_similarity = 0.3, part_of = parts })
    :generate({ "The film was good." }, ms.tensor { 0 })
  t.equal(found:item(), true)
  for most = 1, 8 do
    asked = 0
    local one = attack { max_queries = most, max_changes = 1.0, min_text_similarity = 0.3 }
    queries = select(3, one:generate { "very good film was very nice" })
    assert(queries:item() <= most and asked == queries:item(), most)
  end
  t.fails({ "there are 2 words, and embeddings" }, function() attacks.black.WordSubstitutionAttack(verdict, { "a", "b" }, vectors) end)
  t.fails({ "texts must be a list" }, function() attack():generate("good") end)
  t.fails({ "text 2 must be" }, function() attack():generate { "good", 5 } end)
  t.fails({ "labels must be the classes to reach" }, function() attack({ is_targeted = true }):generate { "good" } end)
  t.fails({ "the model must give logits" }, function()
    attacks.black.WordSubstitutionAttack(function(list) return ms.ones { #list } end, words, vectors):generate { "good" }
  end)
end)

t.test("near attacks and attacks by answers work on another device, and find there what they find here", function()
  local small = nn.SequentialCell(nn.Flatten(), nn.Dense(36, 8), nn.Tanh(), nn.Dense(8, 4))
  local images = ops.rand { 4, 1, 6, 6 } * 0.5 + 0.25
  local labels = ops.argmax(small(images), 1):astype(ms.int32)
  local makers = {
    function(net) return attacks.CarliniWagnerL2Attack(net, 4, { max_iterations = 20, bin_search_steps = 2, initial_const = 1 }) end,
    function(net) return attacks.ElasticNetAttack(net, 4, { max_iterations = 20, bin_search_steps = 2, initial_const = 1 }) end,
    function(net) return attacks.DeepFool(net, 4) end,
    function(net) return attacks.JSMAAttack(net, 4, { max_iteration = 2 }) end,
    function(net) return attacks.LBFGS(net, { search_iters = 8, nb_iter = 20, is_targeted = false }) end,
    function(net) return attacks.FastAdaptiveBoundary(net, { nb_iter = 5 }) end,
    function(net) return attacks.black.SquareAttack(net, { max_queries = 20 }) end,
    function(net) return attacks.black.HopSkipJumpAttack(net, { num_iterations = 1 }) end,
    function(net) return attacks.black.GeneticAttack(net, { is_targeted = false, max_steps = 3 }) end,
  }
  local function all(net, x_of, y_of)
    local list = {}
    for i, make in ipairs(makers) do
      local first, second = make(net):generate(x_of, y_of)
      list[i] = second or first
    end
    return list
  end
  local here = all(small, images, labels)
  ms.set_context { device_target = "Separate" }
  local ok, wrong = pcall(function()
    local there = all(small:to "Separate", images:to "Separate", labels:to "Separate")
    for i, adv in ipairs(there) do t.near(adv:to "CPU", here[i], 2e-3) end
  end)
  ms.set_context { device_target = "CPU" }
  assert(ok, wrong)
end)

t.finish()
