-- Steps of optimizers (ai.onnx.preview.training) and operators of ai.onnx.ml on numbers.
local ms = require "lunaria"
local define = require "lunaria.onnx.define"

local ops = ms.ops

-- f(learning rate, step, weight, gradient, states ...) gives the new weight and states; weights come all first, then
-- gradients, then each kind of state.
local function optimizer(name, spec, states, make)
  define.define("ai.onnx.preview.training:" .. name, spec, 3, 1000, function(a, node)
    local count = (node.inputs - 2) // (2 + states)
    local f = make(a, node)
    return function(rate, step, ...)
      local given, results = { ... }, {}
      for k = 1, count do
        local one = {}
        for s = 0, states + 1 do one[s + 1] = given[s * count + k] end
        local new = { f(rate, step, table.unpack(one)) }
        for s = 1, states + 1 do results[(s - 1) * count + k] = new[s] end
      end
      return table.unpack(results, 1, (states + 1) * count)
    end
  end)
end

optimizer("Adagrad", "decay_factor:f=0 epsilon:f=0 norm_coefficient:f=0", 1, function(a)
  return function(rate, step, x, g, h)
    local r = rate / (ops.cast(step, x.dtype) * a.decay_factor + 1)
    g = g + x * a.norm_coefficient
    h = h + g * g
    return x - r * g / (ops.sqrt(h) + a.epsilon), h
  end
end)

optimizer("Momentum", "alpha:f! beta:f! mode:s! norm_coefficient:f!", 1, function(a, node)
  if a.mode ~= "standard" and a.mode ~= "nesterov" then node.fail(("the mode '%s' is not known"):format(a.mode)) end
  return function(rate, step, x, g, v)
    g = g + x * a.norm_coefficient
    local beta = define.number(step) > 0 and a.beta or 1.0
    v = v * a.alpha + g * beta
    if a.mode == "nesterov" then return x - rate * (g + v * a.alpha), v end
    return x - rate * v, v
  end
end)

optimizer("Adam", "alpha:f=0.9 beta:f=0.999 epsilon:f=0 norm_coefficient:f=0 norm_coefficient_post:f=0", 2, function(a)
  return function(rate, step, x, g, v, h)
    g = g + x * a.norm_coefficient
    v = v * a.alpha + g * (1 - a.alpha)
    h = h * a.beta + g * g * (1 - a.beta)
    local t = define.number(step)
    local r = t > 0 and rate * (math.sqrt(1 - a.beta ^ t) / (1 - a.alpha ^ t)) or rate
    local new = x - r * v / (ops.sqrt(h) + a.epsilon)
    return new * (1 - a.norm_coefficient_post), v, h
  end
end)

define.define("ai.onnx.ml:Binarizer", "threshold:f=0", 1, 1, function(a)
  return function(x) return ops.cast(ops.greater(x, a.threshold), x.dtype) end
end)
define.define("ai.onnx.ml:ArrayFeatureExtractor", "", 2, 2, function()
  return function(x, y) return ops.gather(x, ops.reshape(y, { -1 }), -1) end
end)

define.define("TfIdfVectorizer",
  "max_gram_length:i! max_skip_count:i! min_gram_length:i! mode:s! ngram_counts:ints! ngram_indexes:ints! pool_int64s:ints "
  .. "pool_strings:strings weights:floats", 1, 1, function(a, node)
    if not a.pool_int64s then node.fail "grams of strings are not supported" end
    local mode, grams, size = a.mode, {}, 0
    if mode ~= "TF" and mode ~= "IDF" and mode ~= "TFIDF" then node.fail(("the mode '%s' is not known"):format(mode)) end
    local number = 0
    for length, from in ipairs(a.ngram_counts) do
      local to = a.ngram_counts[length + 1] or #a.pool_int64s
      for at = from + 1, to, length do
        number = number + 1
        grams[table.concat(a.pool_int64s, ",", at, at + length - 1)] = number
      end
    end
    for _, i in ipairs(a.ngram_indexes) do
      if i < 0 then node.fail(("an index of ngram_indexes is %d"):format(i)) end
      size = math.max(size, i + 1.0)
    end
    size = math.tointeger(define.listed(size))
    local function row(list)
      local counts = {}
      for i = 1, size do counts[i] = 0.0 end
      -- Longer grams, and wider ones, do not fit into the list.
      for skip = 0, math.min(a.max_skip_count, #list) do
        for length = math.max(a.min_gram_length, 1), math.min(a.max_gram_length, #list) do
          if length > 1 or skip == 0 then
            for at = 1, #list - (length - 1) * (skip + 1) do
              local words = {}
              for k = 0, length - 1 do words[k + 1] = list[at + k * (skip + 1)] end
              local gram = grams[table.concat(words, ",")]
              if gram then
                local place = a.ngram_indexes[gram] + 1
                counts[place] = counts[place] + 1
              end
            end
          end
        end
      end
      for gram, index in ipairs(a.ngram_indexes) do
        local i, weight = index + 1, a.weights and a.weights[gram] or 1.0
        if mode == "IDF" and counts[i] > 0 then counts[i] = weight end
        if mode == "TFIDF" then counts[i] = counts[i] * weight end
      end
      return counts
    end
    return function(x)
      local list = x:tolist()
      if x.ndim == 1 then return ms.tensor(row(list), ms.float32) end
      local rows = {}
      define.listed(size, #list)
      for i, words in ipairs(list) do rows[i] = row(words) end
      return ms.tensor(rows, ms.float32)
    end
  end)
