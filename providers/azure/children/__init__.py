"""What is inside a flexible server: databases, firewall rules, configurations. None carries a tag."""
