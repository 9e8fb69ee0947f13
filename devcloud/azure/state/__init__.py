"""What there is: resource groups, servers, locks; and what Azure has to choose from. Pure."""
