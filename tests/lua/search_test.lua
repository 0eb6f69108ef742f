-- The search of help and of the site finds the right page first: questions that were written down before the search was,
-- with the entry that answers them (or one of several).
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local t = require "harness"
local search = require "lunaria.help.search"

local questions = {
  { "how do I freeze a layer", "guide.freezing" },
  { "fine tuning", "guide.freezing" },
  { "train on several machines", "guide.ranks" },
  { "distributed data parallel", "guide.ranks" },
  { "torchrun", "guide.ranks" },
  { "cross entropy", "ms.ops.cross_entropy", "ms.nn.CrossEntropyLoss" },
  { "nn.Linear", "ms.nn.Dense" },
  { "fully connected layer", "ms.nn.Dense" },
  { "torch.cat", "ms.ops.concat" },
  { "unsqueeze", "ms.ops.expand_dims" },
  { "how to train a network", "guide.training" },
  { "training loop", "guide.training" },
  { "zero_grad", "guide.training", "ms.value_and_grad" },
  { "loss.backward", "guide.training", "ms.value_and_grad" },
  { "save a model", "guide.saving" },
  { "load_state_dict", "guide.saving", "ms.load_weights", "ms.nn.Optimizer:load_state_dict" },
  { "checkpoint", "ms.checkpoint", "guide.saving" },
  { "custom layer", "guide.cells" },
  { "nn.Module", "ms.nn.Cell" },
  { "second derivative", "guide.gradients", "ms.hessian" },
  { "jacobian", "ms.jacrev", "ms.jacfwd", "guide.gradients" },
  { "stop gradient", "ms.stop_gradient", "ms.ops.stop_gradient" },
  { "torch.compile", "ms.jit" },
  { "graph mode", "guide.graph", "ms.GRAPH_MODE" },
  { "why is it slow", "guide.performance", "guide.graph" },
  { "profiler", "guide.graph", "ms.profile", "ms.Profiler" },
  { "custom operator", "guide.own_operators" },
  { "custom gradient", "guide.own_operators", "ms.custom_vjp" },
  { "breakpoint", "breakpoint" },
  { "pdb", "%pdb", "guide.debugging", "breakpoint" },
  { "DataLoader", "guide.data", "ms.data_sink" },
  { "shuffle the data", "guide.data" },
  { "plot the loss", "guide.plots" },
  { "progress bar", "ms.progress", "guide.plots", "ms.widgets.progress" },
  { "random seed", "guide.random", "ms.set_seed" },
  { "manual_seed", "ms.Generator:manual_seed", "ms.set_seed", "guide.random" },
  { "learning rate schedule", "guide.learning_rates" },
  { "lr_scheduler", "guide.learning_rates", "ms.experimental.optim.lr_scheduler", "ms.experimental.optim.LRScheduler" },
  { "adam", "ms.nn.Adam" },
  { "weight decay", "ms.nn.AdamWeightDecay", "ms.nn.AdamW" },
  { "softmax", "ms.ops.softmax", "ms.nn.Softmax" },
  { "convolution 2d", "ms.ops.conv2d", "ms.nn.Conv2d" },
  { "max pooling", "ms.nn.MaxPool2d", "ms.nn.MaxPool1d", "ms.ops.max_pool2d", "ms.ops.max_pool1d", "ms.ops.max_pool3d" },
  { "batch normalization", "ms.ops.batch_norm", "ms.nn.BatchNorm1d", "ms.nn.BatchNorm2d", "ms.nn.BatchNorm3d" },
  { "layer norm", "ms.ops.layer_norm", "ms.nn.LayerNorm" },
  { "dropout", "ms.nn.Dropout", "ms.ops.dropout" },
  { "attention", "ms.nn.MultiheadAttention", "ms.ops.attention", "ms.ops.flash_attention_score" },
  { "lstm", "ms.nn.LSTM" },
  { "embedding", "ms.nn.Embedding", "ms.ops.embedding" },
  { "matrix multiplication", "ms.ops.matmul", "ms.ops.mm" },
  { "a @ b", "ms.ops.matmul" },
  { "x.size", "x:sizes", "x.size" },
  { "reshape", "ms.ops.reshape" },
  { "np.concatenate", "ms.ops.concat" },
  { "index of the largest element", "ms.ops.argmax" },
  { "sort", "ms.ops.sort" },
  { "inverse of a matrix", "ms.ops.inverse", "ms.ops.inv", "ms.ops.pinv" },
  { "clip gradients", "ms.ops.clip_by_global_norm", "ms.ops.clip_by_norm" },
  { "float16", "ms.float16" },
  { "number of threads", "ms.set_num_threads", "ms.get_num_threads", "LUNARIA_NUM_THREADS", "OMP_NUM_THREADS" },
  { "LUNARIA_LOG", "LUNARIA_LOG" },
  { "%timeit", "%timeit" },
  { "run a shell command", "!COMMAND", "%%sh" },
  { "slicing", "guide.tensors" },
  { "coming from pytorch", "guide.from_pytorch" },
  { "accuracy", "ms.train.Accuracy" },
  { "one hot", "ms.ops.one_hot" },
}

t.test("there are sixty questions", function() assert(#questions >= 60, #questions) end)
for _, row in ipairs(questions) do
  t.test(row[1], function()
    local found, names = search.find(row[1], 3), {}
    for i, entry in ipairs(found) do names[i] = entry.name end
    for i = 2, #row do
      if row[i] == names[1] then return end
    end
    error(("%s comes first, not %s"):format(table.concat(names, ", "), row[2]), 0)
  end)
end

-- Half of what follows a day: the lists take ten seconds.
t.each_day(2)

-- Lists of questions as they were written before the search had seen them: how many find the answer first, at least.
local least = { 63, 26, 26, 26, 108, 46, 69, 36, 106, 58 }
for i, list in ipairs(require "search_questions") do
  t.test("strangers' questions, list " .. i, function()
    local wrong = {}
    for _, row in ipairs(list) do
      local found, right = search.find(row[1], 1)[1], false
      for k = 2, #row do right = right or found and found.name == row[k] end
      if not right then wrong[#wrong + 1] = ("%s: %s"):format(row[1], found and found.name or "nothing") end
    end
    if #list - #wrong < least[i] then error(("%d of %d:\n%s"):format(#wrong, #list, table.concat(wrong, "\n")), 0) end
  end)
end
t.test("what nothing is known about is said to be so", function()
  local show = require "lunaria.help.show"
  t.equal(show.search "qqqqzz", nil)
  assert(show.search("qqqqzz wwwwyy conv2d"):find "nothing has all of")
  assert(not show.search("convolution"):find "nothing has all of")
end)

-- The whole site costs several seconds of a processor: it is written once for both tests.
local folder = os.tmpname()
os.remove(folder)
require "lunaria.help.site" (folder)

t.test("the site is smaller than 12 MB and has no dead link", function()
  local function text_of(path)
    local file = io.open(path)
    local text = file and file:read "a"
    if file then file:close() end
    return text
  end
  local size, anchors, dead = 0, {}, {}
  for path in io.popen("find " .. folder .. " -type f"):lines() do
    local text = text_of(path)
    size = size + #text
    if path:find "%.html$" then
      anchors[path] = {}
      for id in text:gmatch ' id="([^"]+)"' do anchors[path][id] = true end
    end
  end
  for path in pairs(anchors) do
    for way, id in text_of(path):gmatch 'href="([^"#:]*)#?([^"]*)"' do
      local target = way == "" and path or folder .. "/" .. (way:find "^%.%./" and way:sub(4) or path:match "([^/]+/)[^/]*$"
        :gsub("^" .. folder:match "[^/]+$" .. "/$", "") .. way)
      local there = anchors[target] or text_of(target)
      local known = there and (id == "" or way:find "source%.html$" or type(there) == "table" and there[id])
      -- An address with a scheme, such as a picture within the page, is no file of the site.
      if not known and id:sub(1, 1) ~= ":" then dead[#dead + 1] = path:sub(#folder + 2) .. ": " .. way .. "#" .. id end
    end
  end
  t.equal(dead, {})
  assert(size > 3e6 and size < 12e6, size)
end)

-- The page's own script, where there is a browser, ranks as search.lua does.
t.test("the site's script gives the same first pages", function()
  if not os.execute "command -v chromium >/dev/null 2>&1" then return end
  local ms = require "lunaria"
  local texts = {}
  for i, row in ipairs(questions) do texts[i] = row[1] end
  local file = assert(io.open(folder .. "/check.html", "w"))
  file:write('<meta charset="utf-8"><body></body><script src="index.js"></script><script src="search.js"></script><script>',
    "document.body.textContent = ", ms.json.encode(texts), '.map((q) => find(q, 5).map((d) => d[6]).join(" ")).join("|")</script>')
  file:close()
  local pipe = io.popen("timeout 60 chromium --headless --no-sandbox --disable-gpu --user-data-dir=" .. folder
    .. "/profile --dump-dom file://" .. folder .. "/check.html 2>/dev/null")
  local got = pipe:read("a"):match "<body>(.-)</body>"
  pipe:close()
  local list = {}
  for i, row in ipairs(questions) do
    local names = {}
    for k, entry in ipairs(search.find(row[1], 5)) do names[k] = entry.name end
    list[i] = table.concat(names, " ")
  end
  t.equal((got or ""):gsub("&gt;", ">"):gsub("&amp;", "&"), table.concat(list, "|"))
end)
os.execute("rm -r " .. folder)
t.finish()
