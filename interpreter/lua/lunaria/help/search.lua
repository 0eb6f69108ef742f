-- Search in the index: the same ranking here and in the site's page (site_script.lua), over the same index, which is made
-- of documents with weighted words. A document's score for a query is the sum over the query's words of
--
--   weight of the word in the document * rarity of the word
--
-- where a word of the query also matches longer words that begin with it, at a lower weight, and a document whose name
-- is the query itself comes first.
local entries = require "lunaria.help.entries"
local other_names = require "lunaria.help.other_names"

local search = {}

local stop = {}
for word in ([[a an the of to in on is it as i do does how can my for with from and or at by be what which that this are
  use using get make into out when where there their its]]):gmatch "%S+" do
  stop[word] = true
end

-- One form of a word's variants, as plurals and -ing.
local function stem(word)
  if #word > 4 then
    word = word:gsub("ies$", "y"):gsub("([^s])s$", "%1")
    if #word > 6 then word = word:gsub("ing$", ""):gsub("ation$", ""):gsub("ed$", "") end
  end
  return word
end

--- The words of a text: lower case, split where letters change into digits or lower case into upper.
function search.words(text)
  local list = {}
  local function add(word)
    word = word:lower()
    if not stop[word] and word ~= "" then list[#list + 1] = stem(word) end
  end
  for token in text:gmatch "[%w_]+" do
    local split = token:gsub("(%l)(%u)", "%1_%2"):gsub("(%a)(%d+%a)$", "%1_%2")
    local whole = token:gsub("_", "")
    if split:find "_" then
      for part in split:gmatch "[^_]+" do add(part) end
    end
    add(whole)
  end
  return list
end

local NAME, ALSO, OTHER, TEXT, KIND = 10, 6, 9, 1, 2

local function add_words(document, text, weight)
  for _, word in ipairs(search.words(text)) do
    document.words[word] = math.max(document.words[word] or 0, weight)
  end
end

local function last_part(name) return name:match "[%w_]+$" or name end

local kind_weight = { operator = 1.0, class = 1.1, guide = 1.15, ["function"] = 1.1, lua = 0.8, property = 0.9, method = 0.95 }

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

-- What people call a thing whose name and text say it otherwise.
local phrases = {
  ["ms.ops.matmul"] = "matrix multiplication, matrix product, dot product, multiply matrices",
  ["ms.ops.mul"] = "elementwise product, hadamard product",
  ["ms.ops.argmax"] = "index of the largest element, position of the maximum, predicted class",
  ["ms.ops.argmin"] = "index of the smallest element, position of the minimum",
  ["ms.ops.concat"] = "join tensors, append tensors",
  ["ms.ops.clip_by_global_norm"] = "clip gradients, gradient clipping, exploding gradients",
  ["ms.ops.reshape"] = "change the shape, view",
  ["ms.ops.permute"] = "reorder axes, swap dimensions",
  ["ms.ops.expand_dims"] = "add an axis, add a dimension",
  ["ms.ops.squeeze"] = "remove an axis, remove a dimension",
  ["ms.ops.one_hot"] = "one hot encoding",
  ["ms.ops.equal"] = "compare tensors, elementwise equality",
  ["ms.ops.isclose"] = "almost equal, compare floats",
  ["ms.ops.einsum"] = "einstein summation",
  ["ms.ops.inverse"] = "invert a matrix",
  ["ms.ops.interpolate"] = "resize an image, upsampling",
  ["ms.nn.Dense"] = "linear layer, fully connected layer, feed forward layer, mlp",
  ["ms.nn.MultiheadAttention"] = "self attention, transformer",
  ["ms.nn.LSTM"] = "recurrent network",
  ["ms.nn.Conv2d"] = "convolutional layer, cnn",
  ["ms.nn.Cell"] = "base class of layers",
  ["ms.value_and_grad"] = "loss and gradients",
  ["ms.set_num_threads"] = "number of threads, how many threads, use more cores",
  ["ms.summary"] = "number of parameters, count the parameters, layers of a network",
  ["ms.tensor"] = "make a tensor, table to tensor",
  ["x:item"] = "tensor to number, get the value",
  ["x:tolist"] = "tensor to table",
  ["x:astype"] = "change the dtype, cast",
  ["%timeit"] = "measure the time, benchmark",
  ["!COMMAND"] = "run a shell command",
}

-- { name =, title =, kind =, words = { word = weight }, exact = { query = true } }
local function build()
  documents, by_word = {}, {}
  local targets = others_by_target()
  for _, entry in ipairs(entries.all()) do
    local document = { entry = entry, words = {}, exact = {}, phrases = {}, factor = kind_weight[entry.kind] or 1.0 }
    -- Operators that programs do not call by name: steps of optimizers, gradients of operators.
    if entry.name:find "_grad$" or entry.name:find "^ms%.ops%.apply_" then document.factor = 0.5 end
    -- Of methods that many classes have, those of layers and optimizers come first.
    local elsewhere = entry.kind == "method" and entry.name:find "^ms%." and not entry.name:find "^ms%.nn%."
    -- Operations of pipelines, and functions with numpy's and scipy's names, are called as operators and layers are.
    local of_others = entry.name:find "^ms%.dataset%.%l+%." or entry.name:find "^ms%.numpy%." or entry.name:find "^ms%.scipy%."
    local special = elsewhere or entry.name:find "^ms%.experimental" or entry.name:find "^ms%.armour%." or of_others
    if special then document.factor = 0.8 end
    add_words(document, entry.doc, TEXT)
    add_words(document, entry.kind, KIND)
    add_words(document, entry.family or "", KIND)
    for _, p in ipairs(entry.parameters) do add_words(document, p.name, TEXT) end
    local names = { entry.name }
    for _, name in ipairs(entry.also or {}) do names[#names + 1] = name end
    for i, name in ipairs(names) do
      add_words(document, last_part(name), i == 1 and NAME or ALSO)
      document.exact[name:lower()], document.exact[name:gsub("^ms%.", ""):lower()] = true, true
      document.exact[last_part(name):lower()] = true
      local spaced = last_part(name):gsub("(%l)(%u)", "%1 %2"):gsub("_", " "):lower()
      if spaced:find " " then document.phrases[spaced] = true end
    end
    if entry.kind == "guide" then
      add_words(document, entry.head .. " " .. (entry.words or ""), NAME)
      for phrase in (entry.words or ""):gmatch "[^,]+" do document.phrases[phrase:match "^%s*(.-)%s*$":lower()] = true end
    end
    for _, name in ipairs(targets[entry.name] or {}) do
      add_words(document, last_part(name), OTHER)
      document.exact[name:lower()] = true
    end
    for phrase in (phrases[entry.name] or ""):gmatch "[^,]+" do
      add_words(document, phrase, ALSO)
      document.phrases[phrase:match "^%s*(.-)%s*$"] = true
    end
    documents[#documents + 1] = document
    for word, weight in pairs(document.words) do
      by_word[word] = by_word[word] or {}
      table.insert(by_word[word], { #documents, weight })
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

--- Words that are not looked for.
function search.stop_words()
  local list = {}
  for word in pairs(stop) do list[#list + 1] = word end
  table.sort(list)
  return list
end

--- At most `count` entries for a query, the best first; all: only those that have every word.
function search.find(query, count, all)
  if not documents then build() end
  local scores = {}
  local plain = query:lower():match "^%s*(.-)[%s%(%)]*$"
  local found, words = 0, search.words(query)
  for _, word in ipairs(words) do
    -- Of one word of the query the best match counts in each document.
    local best = {}
    for _, known in ipairs(sorted_words) do
      local factor
      if known == word then
        factor = 1.0
      elseif #word >= 3 and known:sub(1, #word) == word then
        factor = 0.6
      elseif #word >= 4 and known:find(word, 1, true) then
        factor = 0.3
      end
      if factor then
        local list = by_word[known]
        local rarity = math.log(1 + #documents / #list)
        for _, pair in ipairs(list) do
          local score = pair[2] * rarity * factor
          if score > (best[pair[1]] or 0) then best[pair[1]] = score end
        end
      end
    end
    for id, score in pairs(best) do
      local entry = scores[id] or { 0, 0 }
      scores[id] = { entry[1] + score, entry[2] + 1 }
    end
  end
  local list = {}
  for id, document in ipairs(documents) do
    local score = scores[id]
    local enough = score and (not all or score[2] == #words)
    local value = enough and score[1] * (score[2] / #words) * document.factor or 0
    if document.exact[plain] then
      value = value + 1000 * document.factor
    elseif document.phrases[plain] then
      value = value + 500 * document.factor
    end
    if value > 0 then
      found = found + 1
      list[found] = { value, document.entry }
    end
  end
  table.sort(list, function(a, b)
    if a[1] ~= b[1] then return a[1] > b[1] end
    return a[2].name < b[2].name
  end)
  local result = {}
  for i = 1, math.min(count or 10, #list) do result[i] = list[i][2] end
  return result
end

return search
