-- Training in few dimensions (Li et al. 2022): the weights of a training lie near a small subspace. First it is found, by principal
-- components of weights that were kept; then the network is trained within it by a quasi-Newton method with a line search:
--
--     g_k = P g     d_k = -B g_k     s_k = rho^m d_k     with the least m so that new loss < old loss + sigma g_k . s_k
--     momentum = gamma momentum + g - P^T g_k            step = alpha momentum - P^T s_k
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local gradients_of_step = require "lunaria.parallel.step"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local M = {}

--- The elements of all tensors of a list as one vector: the weights of a network, to be kept for ms.boost.pca. tensors: a list of
--- tensors or parameters.
---     > ms.boost.flat({ ms.ones { 2, 2 }, ms.zeros { 3 } }).shape --> (7,)
function M.flat(tensors)
  if type(tensors) ~= "table" or #tensors == 0 then fail("flat", "a list of tensors is expected, got " .. describe(tensors)) end
  local list = {}
  for i, x in ipairs(tensors) do
    if not ms.is_tensor(x) then fail("flat", ("element %d must be a tensor, got %s"):format(i, describe(x))) end
    list[i] = ops.reshape(x, { -1 })
  end
  return #list == 1 and list[1] + 0.0 or ops.concat(list, 0)
end

--- Principal components of vectors, by their Gram matrix, which is as small as there are vectors: rows (n_components, n) of length
--- 1, orthogonal to each other, and the share of the variance that each has. samples: a list of vectors, or a tensor (count, n).
--- n_components: how many, fewer than vectors.
---     > rows, shares = ms.boost.pca({ ms.tensor { 0.0, 1.0 }, ms.tensor { 0.0, 3.0 }, ms.tensor { 0.0, 5.0 } }, 1)
---     > rows.shape, shares:tolist()[1] --> (1, 2)	1.0
function M.pca(samples, n_components)
  local x = samples
  if type(samples) == "table" and #samples > 0 then
    for i, row in ipairs(samples) do
      if not ms.is_tensor(row) or row.ndim ~= 1 then fail("pca", ("samples[%d] must be a vector, got %s"):format(i, describe(row))) end
    end
    x = ops.stack(samples, 0)
  end
  if not ms.is_tensor(x) or x.ndim ~= 2 then
    fail("pca", "samples must be a list of vectors or a tensor of two axes, got " .. describe(samples))
  end
  local k = check.positive("pca", "n_components", n_components)
  if k >= x.shape[1] then
    fail("pca", ("n_components is %d, but %d samples have at most %d components"):format(k, x.shape[1], x.shape[1] - 1))
  end
  local centred = x - ops.mean(x, 0, true)
  -- In double precision, as the small eigenvalues are differences of large numbers.
  local wide = centred:astype(ms.float64)
  local values, vectors = ops.eigh(ops.matmul(wide, ops.swapaxes(wide, 0, 1)))
  local order = ops.argsort(values, 0, true)[{ ms.slice(0, k) }]
  local largest = ops.gather(values, order, 0)
  if not (largest[k - 1]:item() > 1e-14 * largest[0]:item()) then
    fail("pca", ("the samples have fewer than %d components"):format(k), "give more samples that differ, or a smaller n_components")
  end
  local rows = ops.matmul(ops.swapaxes(ops.gather(vectors, order, 1), 0, 1), wide) / ops.expand_dims(ops.sqrt(largest), 1)
  return rows:astype(x.dtype), (largest / ops.sum(values)):astype(x.dtype)
end

local DimReduce = cells.layer(cells.Cell, "DimReduce",
  "network, optimizer, weight, pca_mat_local, n_components=nil, rho=0.55, gamma=0.9, alpha=0.001, sigma=0.4, rank=0, rank_size=1, "
    .. "max_search_time=2",
  [[One step of training in few dimensions: cell(inputs...) gives the loss before it.

network: a cell that gives the loss. optimizer: SGD with the rate 1, which makes the steps. weight: the parameters. pca_mat_local:
rows of the subspace, as ms.boost.pca gives them. n_components: how many rows are used; all by default. rho: what a step is shortened
by where the loss does not fall enough. gamma: how much of the momentum of what lies beyond the subspace stays. alpha: its rate.
sigma: the share of the expected fall that is enough. rank, rank_size: 0 and 1, as there is one process. max_search_time: how many
lengths are tried; more than 2 where the first steps are much too long.

  > net = ms.nn.Dense(2, 1)
  > kept = {}
  > for i = 1, 3 do kept[i] = ms.randn { 3 } end
  > loss = ms.nn.WithLossCell(net, ms.nn.MSELoss())
  > step = ms.boost.DimReduce(loss, ms.nn.SGD(net:trainable_params(), 1.0), net:trainable_params(), (ms.boost.pca(kept, 2)))
  > step(ms.ones { 4, 2 }, ms.ones { 4, 1 }).shape --> ()]])
M.DimReduce = DimReduce
DimReduce.auto_prefix = false

function DimReduce:setup(a)
  local name = "DimReduce"
  if not cells.is_cell(a.network) then fail(name, "network must be a cell that gives the loss, got " .. describe(a.network)) end
  if not cells.is_cell(a.optimizer) or not a.optimizer.parameters then
    fail(name, "optimizer must be an optimizer, got " .. describe(a.optimizer))
  end
  if type(a.weight) ~= "table" or #a.weight == 0 or #a.weight ~= #a.optimizer.parameters then
    fail(name, "weight must be the list of the optimizer's parameters, got " .. describe(a.weight))
  end
  if a.rank ~= 0 or a.rank_size ~= 1 then fail(name, "rank must be 0 and rank_size 1: there is one process") end
  for _, key in ipairs { "rho", "gamma", "alpha", "sigma" } do self[key] = check.number_not_negative(name, key, a[key]) end
  self.max_search_time = check.positive(name, "max_search_time", a.max_search_time)
  self.network, self.optimizer = a.network, a.optimizer
  local p, size = a.pca_mat_local, 0
  for i, w in ipairs(a.weight) do
    if not ms.is_parameter(w) then fail(name, ("weight[%d] must be a parameter, got %s"):format(i, describe(w))) end
    size = size + w.size
  end
  if not ms.is_tensor(p) or p.ndim ~= 2 or p.shape[2] ~= size then
    fail(name, ("pca_mat_local must be a tensor (components, %d), got %s"):format(size, describe(p)))
  end
  local k = a.n_components == nil and p.shape[1] or check.positive(name, "n_components", a.n_components)
  if k > p.shape[1] then fail(name, ("n_components is %d, but pca_mat_local has %d rows"):format(k, p.shape[1])) end
  rawset(self, "weight", a.weight)
  self.pca = p[{ ms.slice(0, k) }] + 0.0
  local function state(key, shape)
    self[key] = ms.Parameter(ops.zeros(shape, p.dtype), key, false)
  end
  state("gk_last", { k })
  state("sk", { k })
  state("grad_res_momentum", { size })
  self.bk = ms.Parameter(ops.eye(k, k, p.dtype), "bk", false)
  self.started = ms.Parameter(ms.tensor(0), "started", false)
  local weights = { parameters = a.weight, parameters_and_names = function() return next, {} end }
  self.gradients = gradients_of_step(self, a.network, a.network, weights)
end

-- A vector as tensors of the weights' shapes.
local function split(self, vector)
  local list, first = {}, 0
  for i, w in ipairs(self.weight) do
    list[i] = ops.reshape(vector[{ ms.slice(first, first + w.size) }], w.shape):astype(w.dtype)
    first = first + w.size
  end
  return list
end

-- The inverse of the curvature by Broyden, Fletcher, Goldfarb and Shanno, from the last step and what it did to the gradient.
local function curvature(self, gk)
  local bk = self.bk + 0.0
  if self.started:item() == 0 then return bk end
  local y, s = gk - self.gk_last, self.sk + 0.0
  local product = ops.sum(y * s)
  if not (product:item() > 1e-20) then return bk end
  local p = 1.0 / product
  local t = ops.eye(#gk, #gk, gk.dtype) - p * ops.ger(y, s)
  return ops.matmul(ops.matmul(ops.swapaxes(t, 0, 1), bk), t) + p * ops.ger(s, s)
end

function DimReduce:construct(...)
  local loss, grads = self.gradients(...)
  local g = M.flat(grads):astype(self.pca.dtype)
  local gk = ops.matmul(self.pca, g)
  local bk = curvature(self, gk)
  local dk = -ops.matmul(bk, gk)
  local dn = ops.matmul(dk, self.pca)
  local slope, old = self.sigma * ops.sum(gk * dk):item(), loss:item()
  local saved = {}
  for i, w in ipairs(self.weight) do saved[i] = w:copy() end
  local rho, found = 1.0, false
  for m = 0, self.max_search_time - 1 do
    rho = self.rho ^ m
    self.optimizer(split(self, -rho * dn))
    found = self.network(...):item() < old + rho * slope
    for i, w in ipairs(self.weight) do w:assign(saved[i]) end
    if found then break end
  end
  if found then
    self.bk:assign(bk)
    self.gk_last:assign(gk)
    self.sk:assign(rho * dk)
    self.started:assign(ms.tensor(1))
  else
    rho = 0.0
  end
  self.grad_res_momentum:assign(self.gamma * self.grad_res_momentum + g - ops.matmul(gk, self.pca))
  self.optimizer(split(self, self.alpha * self.grad_res_momentum - rho * dn))
  return loss
end

return M
