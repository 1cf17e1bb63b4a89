"""What every answer of the HTTP door has in common."""

from pydantic import BaseModel, ConfigDict


class Given(BaseModel):
    """What a client gets."""

    model_config = ConfigDict(use_attribute_docstrings=True, json_schema_serialization_defaults_required=True)
