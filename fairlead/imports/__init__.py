"""`fairlead import`: what is there becomes a managed resource or a claim, and nothing changes unagreed."""
