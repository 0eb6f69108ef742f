-- Search in the index: the same ranking here and in the site's page (site_files.lua), over the same index, which is made of documents
-- with weighted words.
--
-- A query is cut into spans: a phrase that concepts.lua knows, or a single word. A word's score in a document is
--
--   weight of the word there * rarity of the word
--
-- and a span's the sum over its words, or, where that is more, what the best of the library's own words for the concept has. A
-- document has the sum over the spans, times a power of the share of the query (by rarity) that it has at all, times a factor for its kind.
-- A document of which a phrase stands in the query has more, and one whose name or phrase is the query itself comes first. Words that do
-- not say what is looked for (words.noise) are left out, and a name in the query that looks like code leads to what is called so, here or
-- elsewhere.
local entries = require "lunaria.help.entries"
local other_names = require "lunaria.help.other_names"
local concepts = require "lunaria.help.concepts"
local keywords = require "lunaria.help.keywords"
local words = require "lunaria.help.words"

local search = { words = words.of }

-- Weights of words by where they stand, and of what is found by a concept, by the beginning of a word and by its middle.
local weight = { whole = 14, name = 10, keyword = 8, also = 6, other = 9, class = 3, path = 2, first = 2.5, text = 1, kind = 2, area = 3 }
search.named = weight.name
search.code = 250 -- what a document has more whose name stands in the query
search.enough = 0.5 -- of a query by rarity: with less, what is found has other words only
search.factors = { concept = 0.85, beginning = 0.5, middle = 0.2, further = 0.3, phrase = 3, scattered = 0.6, share = 1.0, order = 0.9,
  weak = 0.4, known = 0.1 }

local kind_factor = { operator = 1.0, class = 1.1, guide = 1.2, ["function"] = 1.1, lua = 0.8, property = 0.9, method = 0.9, object = 0.8,
  constant = 0.9, module = 0.95, ["debugger command"] = 0.5, option = 0.8 }

-- Of names that begin so, others are meant more often.
local area_factor = { { "^ms%.experimental%.", 0.8 }, { "^ms%.numpy%.", 0.65 }, { "^ms%.scipy%.", 0.85 }, { "^ms%.mint%.", 0.7 },
  { "^ms%.ops%.[A-Z]", 0.8 }, { "^ms%.armour%.", 0.55 }, { "^ms%.federated%.", 0.5 }, { "^ms%.ascend%.", 0.65 }, { "^ms%.boost%.", 0.8 },
  { "^ms%.dataset%.audio", 0.9 }, { "^ms%.dataset%.transforms", 0.9 }, { "^ms%.communication%.", 0.85 }, { "_grad$", 0.5 },
  { "^ms%.ops%.apply_", 0.5 }, { "^ms%.COOTensor:", 0.8 }, { "^ms%.dataset%.%l+%.", 0.95 }, { "^ms%.nn%.optim%.", 0.85 },
  { "^ms%.insight%.", 0.9 }, { "^ms%.io%.", 0.6 }, { "[13]d$", 0.95 } }

-- What people call the things that the entries of an area are about.
local area_words = { { "^ms%.dataset%.[%u]", "data dataset rows samples" }, { "^ms%.dataset%.vision%.", "image picture photo" },
  { "^ms%.dataset%.audio%.", "audio sound signal" }, { "^ms%.dataset%.text%.", "text sentence word token" },
  { "^ms%.plot%.", "plot chart figure draw" },
  { "^ms%.probability%.distribution%.", "distribution probability" }, { "^ms%.nn%.Cell:", "network layer model" },
  { "^ms%.train%.", "training model" }, { "^ms%.runtime%.", "device memory gpu" }, { "^x[.:]", "tensor" }, { "^%%", "prompt notebook" } }

local function factor_of(entry)
  local factor = kind_factor[entry.kind] or 1.0
  for _, row in ipairs(area_factor) do
    if entry.name:find(row[1]) then factor = factor * row[2] end
  end
  -- Of methods that many classes have, those of tensors, layers and data sets come first.
  if entry.kind == "method" and entry.name:find "^ms%." and not entry.name:find "^ms%.nn%.[CO]" and not entry.name:find "^ms%.Model:"
    and not entry.name:find "^ms%.dataset%.Dataset:" then
    factor = factor * 0.85
  end
  return factor
end

local function last_part(name) return name:match "[%w_]+$" or name end

local function add_words(document, list, value)
  for _, word in ipairs(list) do document.words[word] = math.max(document.words[word] or 0, value) end
end

-- A name of several words is found by one of them less surely than a name of one.
local function add_name(document, name, value)
  local list = words.of(last_part(name))
  add_words(document, list, value * (0.35 + 0.65 / math.max(1, #list - 1)))
  if #list > 1 then add_words(document, { list[#list] }, value) end
end

-- A phrase that a query may be, or have in it; one of its words alone tells less.
local function add_phrase(document, list, value)
  add_words(document, list, value * (0.4 + 0.6 / #list))
  document.phrases[table.concat(list, " ")] = true
end

local function add_phrases(document, text, value)
  for phrase in text:gmatch "[^,]+" do
    local list = words.of(phrase)
    if #list > 0 then add_phrase(document, list, value) end
  end
end

-- The names by which a query may speak of a document: another framework's name, its end, and its last part where that looks like code.
local function add_other_name(document, name)
  local list = words.names(name)
  document.exact[name:lower()] = true
  for _, whole in ipairs(list) do
    while whole:find "%." do
      document.exact[whole] = true
      whole = whole:match "%.(.*)$"
    end
  end
  local last = last_part(name)
  if words.names(last)[1] then document.exact[last:lower()] = true end
end

local function add_names(document, entry)
  local names = { entry.name }
  for _, name in ipairs(entry.also or {}) do names[#names + 1] = name end
  for i, name in ipairs(names) do
    add_name(document, name, i == 1 and weight.name or weight.also)
    local own = words.of(last_part(name))
    document.whole[own[#own] or ""] = true
    -- What a guide is called says less than its title.
    if i == 1 and entry.kind ~= "guide" then add_words(document, { own[#own] }, weight.whole) end
    document.exact[name:lower()], document.exact[name:gsub("^ms%.", ""):lower()] = true, true
    document.exact[last_part(name):lower()] = true
    local spaced = words.of((last_part(name):gsub("(%l)(%u)", "%1 %2"):gsub("_", " ")))
    if #spaced > 1 then document.phrases[table.concat(spaced, " ")] = true end
  end
  local class = entry.name:match "([%w_]+):[%w_]+$"
  if class then add_words(document, words.of(class), weight.class) end
  for part in (entry.name:match "^ms%.(.*)[%.:]" or ""):gmatch "%l[%l_]+" do
    if part ~= "ops" and part ~= "nn" then add_words(document, words.of(part), weight.path) end
  end
end

-- Words of the first sentence count more, those of a long text less.
local function add_text(document, entry)
  local first = entry.doc:match "^(.-[%.:;])%s" or entry.doc
  local all = words.of(entry.doc)
  local share = 1 / (0.6 + 0.4 * math.min(#all / 60, 3))
  add_words(document, all, weight.text * share)
  add_words(document, words.of(first), weight.first * share)
  for _, p in ipairs(entry.parameters) do
    add_words(document, words.of(p.name), weight.text)
    add_words(document, words.of(p.text or ""), weight.text * 0.7 * share)
  end
end

local documents, by_word, sorted_words

local function others_by_target()
  local targets = {}
  for _, rows in pairs(other_names) do
    for _, row in ipairs(rows) do
      targets[row[2]] = targets[row[2]] or {}
      table.insert(targets[row[2]], row[1])
    end
  end
  return targets
end

-- { entry =, words = { word = weight }, exact = { query = true }, phrases = { query = true }, whole = { name as one word = true },
-- factor = }
local function build()
  documents, by_word = {}, {}
  local targets = others_by_target()
  for _, entry in ipairs(entries.all()) do
    local document = { entry = entry, words = {}, exact = {}, phrases = {}, whole = {}, factor = factor_of(entry) }
    add_text(document, entry)
    add_words(document, words.of(entry.kind), weight.kind)
    add_words(document, words.of(entry.family or ""), weight.kind)
    for _, row in ipairs(area_words) do
      if entry.name:find(row[1]) then add_words(document, words.of(row[2]), weight.area) end
    end
    add_names(document, entry)
    if entry.kind == "guide" then
      local title = words.of(entry.head)
      add_words(document, title, weight.name * (0.4 + 0.6 / #title))
      add_phrases(document, entry.words or "", weight.keyword)
    end
    for _, name in ipairs(targets[entry.name] or {}) do
      add_name(document, name, weight.other)
      add_other_name(document, name)
    end
    add_phrases(document, keywords[entry.name] or "", weight.keyword)
    documents[#documents + 1] = document
    for word, value in pairs(document.words) do
      by_word[word] = by_word[word] or {}
      table.insert(by_word[word], { #documents, math.floor(value * 100 + 0.5) / 100 })
    end
  end
  sorted_words = {}
  for word in pairs(by_word) do sorted_words[#sorted_words + 1] = word end
  table.sort(sorted_words)
end

--- The documents and, for each word, the documents that have it with weights: what the site's index holds.
function search.index()
  if not documents then build() end
  return documents, by_word, sorted_words
end

local phrases

--- What concepts say: a list of { the words of a phrase, a list of lists of words for it, plain }, those with more words first. plain:
--- of a phrase of which the words that are not looked for leave one ("how long"), its text, which has to stand in the query as it is.
function search.concepts()
  if phrases then return phrases end
  local by_key, list = {}, {}
  for _, row in ipairs(concepts) do
    local ours = {}
    for term in row[2]:gmatch "[^,]+" do
      local found = words.of(term)
      if #found > 0 then ours[#ours + 1] = found end
    end
    for phrase in row[1]:gmatch "[^,]+" do
      local found = words.of(phrase)
      table.sort(found)
      local text = phrase:match "^%s*(.-)%s*$"
      local plain = #found == 1 and text:find " " and text or nil
      local key = plain or table.concat(found, " ")
      if key ~= "" then
        if not by_key[key] then
          by_key[key] = { found, {}, plain }
          list[#list + 1] = by_key[key]
        end
        table.move(ours, 1, #ours, #by_key[key][2] + 1, by_key[key][2])
      end
    end
  end
  table.sort(list, function(a, b)
    if #a[1] ~= #b[1] then return #a[1] > #b[1] end
    if (a[3] == nil) ~= (b[3] == nil) then return a[3] ~= nil end
    return (a[3] or table.concat(a[1], " ")) < (b[3] or table.concat(b[1], " "))
  end)
  phrases = list
  return phrases
end

-- The places of a phrase's words among those that are left, with at most two words between them that are not the phrase's; nil where it is
-- not there.
local function places_of(phrase, list, left)
  local best, width
  for start = 1, #list - #phrase + 1 do
    local places, last = {}, start
    for _, word in ipairs(phrase) do
      local found
      for i = start, math.min(#list, start + #phrase + 1) do
        if list[i] == word and left[i] and not places[i] then
          found = i
          break
        end
      end
      if not found then
        places = nil
        break
      end
      places[found], last = true, math.max(last, found)
    end
    if places and (not best or last - start < width) then best, width = places, last - start end
  end
  return best, width
end

local function rarity_of(word)
  local list = by_word[word]
  return math.log(1 + #documents / (list and #list or 1))
end

-- The parts of a query: { words, what concepts say or nil }, the longest phrases first, of those the closest, the rest word by word.
local function spans_of(list, query)
  local spans, left, present = {}, {}, {}
  for i, word in ipairs(list) do left[i], present[word] = true, true end
  query = " " .. query:lower():gsub("[^%w]+", " ") .. " "
  local found = {}
  for i, row in ipairs(search.concepts()) do
    local stands = #row[1] <= #list and (not row[3] or query:find(" " .. row[3] .. " ", 1, true))
    for k = 1, stands and #row[1] or 0 do stands = stands and present[row[1][k]] end
    local _, width = places_of(stands and row[1] or {}, list, left)
    if stands and width then
      local rarity = 0
      for _, word in ipairs(row[1]) do rarity = rarity + rarity_of(word) end
      found[#found + 1] = { row, width, i, rarity }
    end
  end
  table.sort(found, function(a, b)
    if #a[1][1] ~= #b[1][1] then return #a[1][1] > #b[1][1] end
    if a[2] ~= b[2] then return a[2] < b[2] end
    if a[4] ~= b[4] then return a[4] > b[4] end
    return a[3] < b[3]
  end)
  for _, row in ipairs(found) do
    local places = places_of(row[1][1], list, left)
    for i in pairs(places or {}) do left[i] = nil end
    if places then spans[#spans + 1] = row[1] end
  end
  for i, word in ipairs(list) do
    if left[i] then spans[#spans + 1] = { { word } } end
  end
  return spans
end

-- The scores of a word: { document = score }. Words that begin with it, or have it in them, count less.
local function scores_of(word)
  local best = {}
  for _, known in ipairs(sorted_words) do
    local factor = known == word and 1.0
    local at = not factor and #word >= 4 and known:find(word, 1, true)
    if at then factor = at == 1 and search.factors.beginning or search.factors.middle end
    if factor then
      if factor < 1 and by_word[word] then factor = factor * search.factors.known end
      local rarity = math.min(rarity_of(known), rarity_of(word))
      for _, pair in ipairs(by_word[known]) do
        local score = pair[2] * rarity * factor
        if score > (best[pair[1]] or 0) then best[pair[1]] = score end
      end
    end
  end
  return best
end

-- The documents that have all words of a term, with the mean of their scores; those that are called so as if the word was rare.
local function scores_of_term(term, cache)
  local result
  for _, word in ipairs(term) do
    if not cache[word] then cache[word] = scores_of(word) end
    local scores, both = cache[word], {}
    for id, score in pairs(result or scores) do
      if scores[id] then both[id] = (result and score or 0) + scores[id] end
    end
    result = both
  end
  local named = weight.name * math.log(1 + #documents / 3)
  for id, score in pairs(result) do
    result[id] = documents[id].whole[term[#term]] and math.max(named, score / #term) or score / #term
  end
  return result
end

-- What a span gives each document: its score, and the share of the span that the document has.
local function scores_of_span(span, cache)
  local score, share, all = {}, {}, 0
  for _, word in ipairs(span[1]) do
    if not cache[word] then cache[word] = scores_of(word) end
    local part = not span[2] and words.is_weak(word) and search.factors.weak or 1
    local rarity = rarity_of(word) * part
    all = all + rarity
    for id, value in pairs(cache[word]) do
      score[id], share[id] = (score[id] or 0) + value * part, (share[id] or 0) + rarity
    end
  end
  for id, value in pairs(share) do share[id] = value / all end
  local through = {}
  for i, term in ipairs(span[2] or {}) do
    local factor = search.factors.order ^ math.min(i - 1, 3)
    for id, value in pairs(scores_of_term(term, cache)) do through[id] = math.max(through[id] or 0, value * factor) end
  end
  local factors = search.factors
  for id, value in pairs(through) do
    value = value * factors.concept * (1 + factors.further * (#span[1] - 1))
    if value > (score[id] or 0) then score[id] = value end
    share[id] = math.max(share[id] or 0, factors.concept)
  end
  return score, share, all
end

-- Without the words of words.noise, where others remain; and those that are left as a text.
local function without_noise(spans, list)
  local kept, text = {}, {}
  for _, span in ipairs(spans) do
    if span[2] or not words.noise[span[1][1]] and not span[1][1]:find "^%d+$" then kept[#kept + 1] = span end
  end
  for _, word in ipairs(list) do
    if not words.noise[word] then text[#text + 1] = word end
  end
  return #kept > 0 and kept or spans, " " .. table.concat(text, " ") .. " "
end

-- The documents that names in the query speak of: { id = true }. Of "torch.nn.functional.pad" the longest end that is known counts.
local function spoken_of(query)
  local ids = {}
  for _, name in ipairs(words.names(query)) do
    local found
    while name and not found do
      for id, document in ipairs(documents) do
        if document.exact[name] then ids[id], found = true, true end
      end
      name = name:match "%.(.*)$"
    end
  end
  return ids
end

-- How much more a document has for the best of its phrases that stands in the query, less where its words are scattered. text: the
-- query's words with blanks around; kept: without those of words.noise.
local function bonus_of(document, text, kept)
  local best = 0
  for phrase in pairs(document.phrases) do
    local sum = 0
    for word in (phrase:find " " and phrase or ""):gmatch "%S+" do
      if not text:find(" " .. word .. " ", 1, true) then
        sum = 0
        break
      end
      sum = sum + rarity_of(word)
    end
    local whole = " " .. phrase .. " "
    if not text:find(whole, 1, true) and not kept:find(whole, 1, true) then sum = sum * search.factors.scattered end
    best = math.max(best, sum)
  end
  return best * search.factors.phrase
end

--- At most `count` entries for a query, the best first, and the largest share of the query that one of them has; all: only those that
--- have every word.
function search.find(query, count, all)
  if not documents then build() end
  local plain = query:lower():match "^%s*(.-)[%s%(%)%?]*$"
  local scores, shares, whole, cache = {}, {}, 0, {}
  local list = words.of(words.without_fillers(query))
  local text, spoken = " " .. table.concat(list, " ") .. " ", spoken_of(query)
  local spans, kept = without_noise(spans_of(list, query), list)
  for _, span in ipairs(spans) do
    local score, share, rarity = scores_of_span(span, cache)
    whole = whole + rarity
    for id, value in pairs(score) do
      scores[id], shares[id] = (scores[id] or 0) + value, (shares[id] or 0) + share[id] * rarity
    end
  end
  local largest = 0
  list = {}
  for id, document in ipairs(documents) do
    local value, share = 0, 0
    if scores[id] and (not all or shares[id] > 0.8 * whole) then
      share = shares[id] / whole
      value = (scores[id] + bonus_of(document, text, kept)) * share ^ search.factors.share * document.factor
    end
    if spoken[id] then value, share = value + search.code * document.factor, math.max(share, search.enough) end
    if document.exact[plain] then
      value, share = value + 1000 * document.factor, 1
    elseif document.phrases[text:sub(2, -2)] or document.phrases[kept:sub(2, -2)] then
      value, share = value + 500 * math.min(document.factor, 1), 1
    end
    if value > 0 then list[#list + 1], largest = { value, document.entry }, math.max(largest, share) end
  end
  table.sort(list, function(a, b)
    if a[1] ~= b[1] then return a[1] > b[1] end
    return a[2].name < b[2].name
  end)
  local result = {}
  for i = 1, math.min(count or 10, #list) do result[i] = list[i][2] end
  return result, largest
end

return search
