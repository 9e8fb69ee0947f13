"""Who calls, and what they may: tokens of Microsoft Entra, role definitions of Azure."""
