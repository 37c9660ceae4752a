from .container import File
