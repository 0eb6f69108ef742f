-- SignDS: how many places are sent, and with which probabilities how many of them are large.
local ms = require "lunaria"
local values = require "armour.values"

return function(section, case)
  for i, row in ipairs(section.cases) do
    case(("signds/%d"):format(i), function()
      local rule = ms.federated.compression.SignDS { size = row.input_dim, sign_k = row.sign_k, sign_eps = row.sign_eps,
        sign_thr_ratio = row.sign_thr_ratio, sign_dim_out = row.sign_dim_out }
      for name, expected in pairs { top = row.topk_dim, sent = row.output_dim, threshold = row.threshold } do
        if rule[name] ~= expected then return ("%s is %d, expected %d"):format(name, rule[name], expected) end
      end
      return values.first(values.differs("share", rule.expected_share, row.expected_topk_share, section.tolerance),
        values.differs("probabilities", rule.probabilities, row.pmf_of_topk_count, section.tolerance))
    end)
  end
end
