"""In from elsewhere: shell text, `docker inspect`, jm-recipe/v1 become a recipe. Nothing that is read is ever run."""
