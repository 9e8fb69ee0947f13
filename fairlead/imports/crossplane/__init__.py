"""What Crossplane composes, as what Fairlead composes: its definitions, and its Compositions of patches."""
