"""What is to come beyond what the recent rate makes expect, as learned from the pool itself."""

from headway.scaling.forecasts.arrival_forecast import ArrivalForecast
from headway.scaling.forecasts.earlier_days import EarlierDays
from headway.scaling.forecasts.in_use import InUse
from headway.scaling.forecasts.rhythmic import Rhythmic

FORECASTS: tuple[type[ArrivalForecast], ...] = (
    InUse,
    Rhythmic,
    EarlierDays,
)
"""In the order in which they are asked. Nothing else names one: each can go with its file, its import and its line."""
