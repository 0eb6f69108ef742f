-- What ops.ScalarSummary and its kin were given since SummaryRecord:record wrote last: values under "plugin name".
return {}
