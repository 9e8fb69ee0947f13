"""One pass over one claim: gather, compose, decide, act, report, write."""
