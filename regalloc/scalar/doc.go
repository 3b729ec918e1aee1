package scalar
