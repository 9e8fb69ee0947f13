"""What other operators' kinds say of themselves: one module an operator, one table of all."""
