-- ms.probability: distributions, bijectors, and layers whose weights are distributions.
local parts = require "lunaria.parts"

return {
  distribution = parts("ms.probability.distribution", "distribution", {
    { "lunaria.probability.distribution", "Distribution" },
    { "lunaria.probability.continuous",
      "Beta Cauchy Exponential Gamma Gumbel HalfNormal Laplace LogNormal Logistic Normal StudentT Uniform" },
    { "lunaria.probability.discrete", "Bernoulli Categorical Geometric Poisson" },
    { "lunaria.probability.bijector", "TransformedDistribution" },
  }),
  bijector = parts("ms.probability.bijector", "bijector", {
    { "lunaria.probability.bijector", "Bijector Exp GumbelCDF Invert PowerTransform ScalarAffine Softplus" },
  }),
  bnn_layers = parts("ms.probability.bnn_layers", "layer", {
    { "lunaria.probability.bnn_layers", "ConvReparam DenseLocalReparam DenseReparam NormalPosterior NormalPrior WithBNNLossCell" },
  }),
}
