-- WordSubstitutionAttack: other words in the places of those that a verdict rests on (Jin and others 2020), under constraints: how alike
-- words and texts are, parts of speech, how many words change.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"
local asking = require "lunaria.armour.black.asking"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local WordSubstitutionAttack = class.define(common.Attack, "WordSubstitutionAttack",
  "model, words, embeddings, max_candidates=50, min_similarity=0.7, max_changes=0.3, part_of=nil, text_similarity=nil, "
    .. "min_text_similarity=0.8, stop_words=nil, is_targeted=false, max_queries=nil, batch_size=64",
  [[Words replaced by near ones until a text gets another verdict (TextFooler, Jin and others 2020): first those without which the verdict
is least sure; of the words that may stand there the one that changes the verdict and leaves the text most alike, else the one with
which it is least sure. model: a function of a list of texts, each a list of words in small letters, that gives logits (N, classes).
words: the list of all words that may be put in, each once. embeddings: their vectors (V, D), near for words that are alike.
max_candidates: how many of the nearest words are tried in a place. min_similarity: the least cosine of a word with the one that it
replaces. max_changes: the share of a text's words that may change, above 0, rounded down, but one at least. part_of: a function of a
word, or a table, that gives its part of speech, which must stay; nil does not look at it. text_similarity: a function of two lists of
words that gives how alike they are; nil takes the cosine of the means of their vectors.
min_text_similarity: the least that a changed text must have with the first. stop_words: a list of words that stay. is_targeted: labels
are the classes to reach. max_queries: questions for each text at most. batch_size: texts that the model is asked for at once.
generate(texts, labels) takes strings or lists of words, and labels (N) or nil for what the model says; it gives whether each was found
(N), a list of the texts, and how often the model was asked for each (N).

  > good = function(words) return words[1] == "good" and 1.0 or -1.0 end
  > model = function(texts) return ms.tensor { { 0.0, good(texts[1]) } } end
  > words, vectors = { "good", "fine" }, ms.tensor { { 1.0, 0.0 }, { 0.9, 0.3 } }
  > attack = ms.armour.attacks.black.WordSubstitutionAttack(model, words, vectors, { max_changes = 0.5, batch_size = 1 })
  > select(2, attack:generate { "Good, again" })[1] --> Fine, again]])

-- A word in small letters, of any alphabet.
local fold
local function folded(word)
  fold = fold or ms.dataset.text.CaseFold()
  return fold(word)
end

-- The numbers, from 0, of the words of a list, in small letters.
local function numbered(where, name, list)
  if type(list) ~= "table" or getmetatable(list) ~= nil then fail(where, name .. " must be a list of words, got " .. describe(list)) end
  local numbers = {}
  for i = 1, #list do
    local word = list[i]
    if type(word) ~= "string" or word == "" then fail(where, ("%s[%d] must be a word, got %s"):format(name, i, describe(word))) end
    if not utf8.len(word) then fail(where, ("%s[%d] is no text in UTF-8"):format(name, i)) end
    word = folded(word)
    if numbers[word] then fail(where, ("%s has '%s' twice, as numbers %d and %d"):format(name, word, numbers[word] + 1, i)) end
    numbers[word] = i - 1
  end
  return numbers
end

local function lookup(where, part_of)
  if part_of == nil then return nil end
  if type(part_of) == "table" and not arguments.is_callable(part_of) then return function(word) return part_of[word] end end
  if not arguments.is_callable(part_of) then fail(where, "part_of must be a function of a word or a table, got " .. describe(part_of)) end
  return part_of
end

function WordSubstitutionAttack:setup(a)
  local name = "WordSubstitutionAttack"
  common.predictor(name, a.model)
  self.model = a.model
  self.words, self.row_of = a.words, numbered(name, "words", a.words)
  if #a.words == 0 then fail(name, "words must be a list of words, got " .. describe(a.words)) end
  if not ms.is_tensor(a.embeddings) or a.embeddings.ndim ~= 2 or a.embeddings.shape[1] ~= #a.words then
    fail(name, ("there are %d words, and embeddings must be a tensor (%d, D), got %s"):format(#a.words, #a.words, describe(a.embeddings)))
  end
  if not ops.all(ops.isfinite(a.embeddings)):item() then fail(name, "embeddings hold nan or infinity") end
  local vectors = ops.is_floating_point(a.embeddings) and a.embeddings or a.embeddings:astype(ms.float32)
  self.vectors = vectors / ops.maximum(ops.sqrt(ops.sum(ops.square(vectors), 1, true)), 1e-12)
  self.max_candidates = check.positive(name, "max_candidates", a.max_candidates)
  self.max_changes = check.probability(name, "max_changes", a.max_changes)
  if self.max_changes == 0 then fail(name, "max_changes must be above 0: without a change there is no other text") end
  for _, option in ipairs { "min_similarity", "min_text_similarity" } do self[option] = check.real(name, option, a[option]) end
  self.part_of = lookup(name, a.part_of)
  if a.text_similarity ~= nil and not arguments.is_callable(a.text_similarity) then
    fail(name, "text_similarity must be a function of two lists of words, got " .. describe(a.text_similarity))
  end
  self.text_similarity = a.text_similarity or function(first, second) return self:_cosine(first, second) end
  self.stop_words = a.stop_words and numbered(name, "stop_words", a.stop_words) or {}
  self.is_targeted = check.boolean(name, "is_targeted", a.is_targeted)
  self.max_queries = a.max_queries and check.positive(name, "max_queries", a.max_queries) or math.maxinteger
  self.batch_size = check.positive(name, "batch_size", a.batch_size)
  self.near = {}
end

-- The mean vector of a text's words that have any; nil if none has.
local function mean_of(self, words)
  local rows = {}
  for _, word in ipairs(words) do rows[#rows + 1] = self.row_of[folded(word)] end
  if #rows == 0 then return nil end
  return ops.mean(ops.gather(self.vectors, ms.tensor(rows, ms.int64), 0), 0)
end

function WordSubstitutionAttack:_cosine(first, second)
  local a, b = mean_of(self, first), mean_of(self, second)
  if not a or not b then return a == b and 1.0 or 0.0 end
  return (ops.sum(a * b) / ops.maximum(ops.sqrt(ops.sum(a * a) * ops.sum(b * b)), 1e-12)):item()
end

-- The words that may stand in the place of one, nearest first.
local function near_words(self, word)
  if self.near[word] then return self.near[word] end
  local row, list = self.row_of[word], {}
  if row then
    -- One more, as the word itself is among the nearest.
    local cosines, places = ops.topk(ops.sum(self.vectors * self.vectors[row], 1), math.min(#self.words, self.max_candidates + 1))
    cosines, places = cosines:tolist(), places:tolist()
    for i = 1, #places do
      local other = self.words[places[i] + 1]
      local same_part = not self.part_of or self.part_of(other) == self.part_of(word)
      if places[i] ~= row and cosines[i] >= self.min_similarity and same_part and #list < self.max_candidates then
        list[#list + 1] = other
      end
    end
  end
  self.near[word] = list
  return list
end

-- Letters of any language and digits, with marks between them.
local of_word = "[\\p{L}\\p{M}\\p{N}]+(?:['’_-]+[\\p{L}\\p{M}\\p{N}]+)*"

-- A text as words and what stands between them: a string, or the number-th text's list of words.
local function taken_apart(text, number)
  local words, between = {}, { "" }
  if type(text) == "table" then
    for i = 1, #text do
      if type(text[i]) ~= "string" or not utf8.len(text[i]) then
        fail("WordSubstitutionAttack", ("word %d of text %d must be a string in UTF-8, got %s"):format(i, number, describe(text[i])))
      end
      words[i] = text[i]
    end
    return words, nil
  end
  if not utf8.len(text) then fail("WordSubstitutionAttack", ("text %d is no text in UTF-8"):format(number)) end
  if text == "" then return words, between end
  local Tokenizer, is_between = ms.dataset.text.RegexTokenizer, {}
  for _, part in ipairs(Tokenizer(of_word)(text)) do is_between[part] = true end
  for _, part in ipairs(Tokenizer(of_word, of_word)(text)) do
    if is_between[part] then
      between[#words + 1] = part
    else
      words[#words + 1] = part
      between[#words + 1] = ""
    end
  end
  return words, between
end

local function put_together(words, between)
  if not between then return words end
  local parts = {}
  for i, word in ipairs(words) do parts[#parts + 1] = between[i] .. word end
  return table.concat(parts) .. between[#words + 1]
end

-- The other word with the capitals of the first.
local function in_capitals_of(word, other)
  if word == folded(word) then return other end
  if word == word:upper() and utf8.len(word) > 1 then return other:upper() end
  local first = word:match(utf8.charpattern)
  return first ~= folded(first) and other:sub(1, 1):upper() .. other:sub(2) or other
end

local function with(words, at, word)
  local copy = table.move(words, 1, #words, 1, {})
  copy[at] = word
  return copy
end

-- What the model gets: words in small letters.
local function asked(sample, texts)
  local list = {}
  for i, words in ipairs(texts) do
    list[i] = {}
    for k, word in ipairs(words) do list[i][k] = folded(word) end
  end
  return sample.ask(list)
end

-- How sure the model is of what the attack works against: the class of a text, or all but the target.
local function sureness(self, sample, answers)
  local own = ops.softmax(answers, 1)[{ ms.slice(), sample.label }]
  return (self.is_targeted and 1 - own or own):tolist(), asking.classes(answers)
end

-- Places of words, those first without which the model is least sure: by how much less it is, and, where its verdict becomes another
-- class, by how much surer of that one it is than with the word (Jin and others 2020, equation 2). answers: to the whole text.
local function ranked(self, sample, answers)
  local places, texts = {}, {}
  for at, word in ipairs(sample.words) do
    if not self.stop_words[folded(word)] and #near_words(self, folded(word)) > 0 then
      places[#places + 1] = at
      texts[#texts + 1] = with(sample.words, at, "")
      table.remove(texts[#texts], at)
    end
  end
  if #sample.words < 2 or #places == 0 then return places end
  local changed = asked(sample, texts)
  local less, before, verdict, verdicts = {}, ops.softmax(answers, 1):tolist()[1], asking.classes(answers)[1], asking.classes(changed)
  for i, row in ipairs(ops.softmax(changed, 1):tolist()) do
    local own, other = sample.label + 1, verdicts[i] + 1
    local falls = before[own] - row[own]
    if self.is_targeted then
      less[places[i]] = -falls
    else
      less[places[i]] = verdicts[i] == verdict and falls or falls + row[other] - before[other]
    end
  end
  table.sort(places, function(a, b)
    if less[a] ~= less[b] then return less[a] > less[b] end
    return a < b
  end)
  return places
end

-- Texts with other words at a place that are enough alike, and how alike they are.
local function candidates(self, sample, at)
  local texts, alike = {}, {}
  for _, other in ipairs(near_words(self, folded(sample.words[at]))) do
    local text = with(sample.best, at, in_capitals_of(sample.words[at], other))
    local similarity = self.text_similarity(sample.words, text)
    if not math.type(similarity) then
      fail("WordSubstitutionAttack", "text_similarity must give a number, got " .. describe(similarity))
    end
    if similarity >= self.min_text_similarity and #texts < self.max_queries - sample.queries then
      texts[#texts + 1], alike[#alike + 1] = text, similarity
    end
  end
  return texts, alike
end

local function attack(self, sample)
  local answers = asked(sample, { sample.words })
  if answers.ndim ~= 2 then fail("WordSubstitutionAttack", "the model must give logits (N, classes), got " .. describe(answers)) end
  local class_of = asking.classes(answers)[1]
  asking.check_label("WordSubstitutionAttack", sample, answers.shape[2])
  sample.label = sample.label or class_of
  local function is_reached(class_number) return (class_number == sample.label) == self.is_targeted end
  sample.found = is_reached(class_of)
  local sure = sureness(self, sample, answers)[1]
  local most, changes = math.max(1, math.floor(self.max_changes * #sample.words + 1e-9)), 0
  if sample.found then return end
  for _, at in ipairs(ranked(self, sample, answers)) do
    local texts, alike = candidates(self, sample, at)
    if #texts > 0 then
      local levels, classes = sureness(self, sample, asked(sample, texts))
      local chosen, best
      for i = 1, #texts do
        local reached = is_reached(classes[i])
        -- Any text that is found before all that are not; of those the most alike, else the one that the model is least sure of.
        local value = reached and 1e6 + alike[i] or -levels[i]
        if (reached or levels[i] < sure) and (not best or value > best) then chosen, best = i, value end
      end
      if chosen then
        sample.best, sure, changes = texts[chosen], levels[chosen], changes + 1
        sample.found = is_reached(classes[chosen])
      end
      if sample.found or changes >= most then return end
    end
  end
end

function WordSubstitutionAttack:_generate(texts, labels)
  local name = "WordSubstitutionAttack"
  if type(texts) ~= "table" or getmetatable(texts) ~= nil or #texts == 0 then
    fail(name, "texts must be a list of strings or of lists of words, got " .. describe(texts))
  end
  if labels == nil and self.is_targeted then fail(name, "labels must be the classes to reach, got nil") end
  local classes = labels ~= nil and common.labels(name, labels, #texts):tolist() or {}
  local samples = {}
  for i, text in ipairs(texts) do
    if type(text) ~= "string" and type(text) ~= "table" then
      fail(name, ("text %d must be a string or a list of words, got %s"):format(i, describe(text)))
    end
    local words, between = taken_apart(text, i)
    samples[i] = { words = words, between = between, best = words, label = classes[i], index = i, found = false,
      columns = labels ~= nil and labels.ndim == 2 and labels.shape[2] or nil }
  end
  asking.run(name, self.model, samples, self.max_queries, self.batch_size, function(sample) attack(self, sample) end)
  local found, best, queries = {}, {}, {}
  for i, sample in ipairs(samples) do
    found[i], best[i], queries[i] = sample.found, put_together(sample.best, sample.between), sample.queries
  end
  return ms.tensor(found), best, ms.tensor(queries, ms.int32)
end

return { WordSubstitutionAttack = WordSubstitutionAttack }
