-- Words of texts and queries in one form: lower case, without endings, in American spelling. The rules are a table, which the site's
-- script has too.
local words = {}

-- Words that are not looked for.
words.stop = {}
for word in ([[a an and any are as at be by can could do does doing for from get give go got had has have here how i id if in into is it its
  just like make me my need of on or our please s set should so some such t than that the their them then there these they this those to
  use used using want was we what when where which will with would you your]]):gmatch "%S+" do
  words.stop[word] = true
end

-- Forms of words that say where a question comes from or how it is put, not what is looked for: a query is searched without them where
-- others remain.
words.noise = {}

-- Phrases that say as little; the same holds for them.
words.fillers = { "at the same time", "difference between", "instead of", "in order to", "for example", "is there" }

-- What stands for what at the beginning of names with dots: numpy and its kind have many short names. The longest first.
words.modules = { { "torch.nn.functional.", "nn.functional." }, { "tf.keras.", "keras." }, { "tensorflow.keras.", "keras." },
  { "tensorflow.", "tf." }, { "jax.numpy.", "np." }, { "jnp.", "np." }, { "numpy.", "np." }, { "torch.nn.", "nn." },
  { "torch.optim.", "optim." }, { "f.", "nn.functional." }, { "mindspore.", "ms." } }

words.irregular = {
  indices = "index", matrices = "matrix", axes = "axis", vertices = "vertex", bias = "bias", biases = "bias", data = "data",
  wrote = "write", written = "write", ran = "run", drawn = "draw", drew = "draw", saw = "see", seen = "see", children = "child",
  halves = "half", lstm = "lstm", rms = "rms", array = "tensor", arrays = "tensor", adamw = "adamw", gpus = "gpu", series = "series",
}

-- Of each pass the first ending that fits is replaced: { ending, the least length of what stands before it, what takes its place }.
words.endings = {
  { { "sses", 2, "ss" }, { "ies", 2, "y" }, { "xes", 2, "x" }, { "ches", 2, "ch" }, { "shes", 2, "sh" }, { "ss", 1, "ss" },
    { "us", 1, "us" }, { "is", 1, "is" }, { "s", 3, "" } },
  { { "ibility", 3, "ibl" }, { "ability", 3, "abl" }, { "isation", 3, "iz" }, { "ization", 3, "iz" }, { "iser", 3, "iz" },
    { "izer", 3, "iz" }, { "ised", 3, "iz" }, { "ized", 3, "iz" }, { "ising", 3, "iz" }, { "izing", 3, "iz" }, { "ise", 4, "iz" },
    { "ize", 3, "iz" }, { "our", 3, "or" }, { "ational", 3, "at" }, { "ation", 3, "at" }, { "ating", 3, "at" }, { "ated", 3, "at" },
    { "ator", 3, "at" }, { "ate", 3, "at" }, { "ional", 4, "" }, { "ion", 4, "" }, { "ness", 4, "" }, { "ly", 4, "" }, { "er", 5, "" },
    { "ing", 3, "" }, { "ed", 3, "" } },
  { { "bb", 1, "b" }, { "dd", 1, "d" }, { "gg", 1, "g" }, { "mm", 1, "m" }, { "nn", 1, "n" }, { "pp", 1, "p" }, { "rr", 1, "r" },
    { "tt", 1, "t" }, { "ell", 3, "el" }, { "at", 5, "" }, { "e", 3, "" } },
}

--- The form of a word in lower case.
function words.stem(word)
  local known = words.irregular[word]
  if known then return known end
  for _, pass in ipairs(words.endings) do
    for _, rule in ipairs(pass) do
      local ending, least = rule[1], rule[2]
      if #word >= #ending + least and word:sub(-#ending) == ending then
        word = word:sub(1, #word - #ending) .. rule[3]
        break
      end
    end
  end
  return word
end

-- What is one word with the word behind its hyphen.
words.prefixes = { "[Nn]on", "[Pp]re", "[Ss]ub", "[Rr]e", "[Uu]n" }

--- The words of a text: split where lower case changes into upper and at _, and the whole too.
function words.of(text)
  local list = {}
  text = text:gsub("([Ee]lement)[%s%-]([Ww]ise)", "%1%2"):gsub("([Ee]lement) by element", "%1wise")
  for _, prefix in ipairs(words.prefixes) do text = text:gsub("%f[%a](" .. prefix .. ")%-(%a)", "%1%2") end
  local function add(word)
    word = word:lower()
    if not words.stop[word] and word ~= "" then list[#list + 1] = words.stem(word) end
  end
  for token in text:gmatch "[%w_]+" do
    local split = token:gsub("(%l)(%u)", "%1_%2"):gsub("(%a)(%d+%a)$", "%1_%2")
    if split:find "_" then
      for part in split:gmatch "[^_]+" do add(part) end
    end
    add((token:gsub("_", "")))
  end
  return list
end

for word in ([[able actually best calculate certain compute convert converting correct correctly create creating
  equivalent example examples given implement jax keras know lua lunaria mindspore numpy obtain perform possible proper
  properly python pytorch right simple simply simplest tensorflow tf torch try trying tutorial usage via way ways work
  works]]):gmatch "%S+" do
  words.noise[words.stem(word)] = true
end

-- Words of texts and programs in general, by which less is looked for than by others: they count for a part of their rarity. So do
-- numbers and sizes.
words.weak = {}
for word in ([[add anymore apply around automatically based build built change check choose code consider contain current customize decide
  define detect different directly during each element entire entry every exist existing explain file fill find first fixed form full
  function general generic getting handle help large last learn list manage manually many measure method mode multiple name new number
  object old once one only option organize original own part particular point process produce python read recommended regular regularly
  require result retrieve return several show single size small specific start started step support system take tensor term thing three
  two type understand update value variable various vector version while whole without write]]):gmatch "%S+" do
  words.weak[words.stem(word)] = true
end

--- Whether a word counts for a part of its rarity.
function words.is_weak(word) return words.weak[word] or word:find "^%d[%dx]*$" ~= nil end

--- A query without the phrases that say little, where others remain.
function words.without_fillers(query)
  local plain = " " .. query:lower():gsub("%s+", " ") .. " "
  for _, filler in ipairs(words.fillers) do plain = plain:gsub(" " .. filler .. " ", " ") end
  return #words.of(plain) > 0 and plain or query
end

--- The names in a query that look like code, in lower case: with a dot, with _ or with a capital inside.
function words.names(text)
  local list = {}
  for token in text:gmatch "[%w_%.]*[%w_]" do
    if token:find "%a%.%a" or token:find "%w_%w" or token:find "%l%u" then
      local name = token:lower():gsub("^%.+", "")
      for _, row in ipairs(words.modules) do
        if name:sub(1, #row[1]) == row[1] then
          name = row[2] .. name:sub(#row[1] + 1)
          break
        end
      end
      list[#list + 1] = name
    end
  end
  return list
end

return words
