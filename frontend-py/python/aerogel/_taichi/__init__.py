"""What stands for modules of Taichi's own: names that programs look up, and what there is in their place."""
