-- The help of attacks by gradients: what each of their arguments is, said once.
local texts = {}

local of = {
  network = "a cell or a function that gives logits (N, classes).",
  eps = "the largest perturbation, as a share of the range of the bounds.",
  eps_iter = "the length of a step, as a share of the range.",
  alpha = "the share of the range that a random step takes first (nil: none), less than eps; the gradient is taken where it ends.",
  bounds = "{ lo, hi } of the inputs (nil: { 0, 1 }), numbers or tensors; false for none.",
  nb_iter = "the number of steps.",
  norm_level = "1, 2 or 'inf'.",
  is_targeted = "whether labels are those that are wanted.",
  loss_fn = "a callable of logits and labels (nil: cross-entropy).",
  decay_factor = "of the momentum.",
  nb_neighbor = "how many points around each iterate give the variance of its gradient.",
  neighbor_beta = "how far away they are, as a multiple of eps.",
  prob = "the probability that an image is changed.",
  resize_rate = "the smallest size of a changed image, as a share of its own.",
  eot_iter = "how many gradients are averaged, for networks with random parts.",
  thr_decr = "the share of steps that must have made the loss grow between two checkpoints; else steps get half as long.",
  random_start = "whether it begins at a random point of the ball.",
  restarts = "how many times it begins anew; of each sample the point of greatest loss is kept.",
  seed = "of the random numbers (nil: from those of the session).",
}

--- The help of a class: what it does, its arguments, and an example, in which `labels` follow the inputs.
function texts.doc(what, signature, name, labels)
  local lines, line = {}, ""
  for argument in signature:gsub("=[^,]*", ""):gmatch "[%w_]+" do
    for word in (argument .. ": " .. of[argument]):gmatch "%S+" do
      if #line + #word > 130 then lines[#lines + 1], line = line, "" end
      line = line == "" and word or line .. " " .. word
    end
  end
  lines[#lines + 1] = line
  return ([[%s

%s

  > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(4, 3))
  > attack = ms.armour.attacks.%s(net, { eps = 0.1 })
  > adv = attack:generate(ms.ones { 2, 1, 2, 2 } * 0.5%s)
  > ms.ops.max(ms.ops.abs(adv - 0.5)):item() <= 0.1001 --> true]]):format(what, table.concat(lines, "\n"), name, labels)
end

return texts
