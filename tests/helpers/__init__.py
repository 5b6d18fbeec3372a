"""What several test files share: slow references, small networks, tiny runs. Not tests themselves."""
