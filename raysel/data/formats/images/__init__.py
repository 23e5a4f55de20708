"""Reading of image files with Pillow, and of folders of them."""
