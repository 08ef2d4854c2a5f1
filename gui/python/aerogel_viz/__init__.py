"""Windows and scenes for Aerogel: pictures drawn by Vulkan, on the screen or off it.

Programs use them as ``ti.ui`` and ``ti.GUI`` of the package ``aerogel``, which imports this one.
"""

from aerogel_viz._viz import MAX_LIGHTS, VERSION, Window, adapter, most_pixels

__all__ = ["MAX_LIGHTS", "VERSION", "Window", "adapter", "most_pixels"]
