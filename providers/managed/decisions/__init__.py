"""What a pass decides: the plan, what of it is not sent again, and when to reconcile again. Pure."""
