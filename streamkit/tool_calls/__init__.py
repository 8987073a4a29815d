"""Tool calls: who is who among the fragments, and whether their JSON is whole."""
