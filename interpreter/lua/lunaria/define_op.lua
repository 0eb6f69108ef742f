-- The name that other frameworks have for ms.op.
return require "lunaria.op"
