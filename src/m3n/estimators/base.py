"""What scikit-learn asks of an estimator, without importing scikit-learn.

scikit-learn's tools (clone, pipelines, grid search, cross-validation) work with anything that keeps its conventions:
the arguments of ``__init__`` are kept under their names and are what ``get_params`` and ``set_params`` speak of; what
``fit`` learns gets names that end with an underscore. Deriving from its base class would keep them too, but importing
it takes as long as everything else that a first ``fit`` needs, two thirds of that for ``scipy.stats``, which no
estimator here uses. So it is imported where one of its own classes is asked for.
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, Self


class Estimator:
    """Parameters by name, as scikit-learn has them."""

    _has_weights: ClassVar[bool] = False  # of its own, that can be shown

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor.

        Parameters
        ----------
        deep : bool
            Also those of arguments that have parameters of their own, as ``argument__parameter``.
        """
        params = {name: getattr(self, name) for name in self._parameter_names()}
        for name, value in list(params.items()) if deep else []:
            if hasattr(value, "get_params") and not isinstance(value, type):
                params |= {f"{name}__{key}": inner for key, inner in value.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Change arguments of the constructor.

        Parameters
        ----------
        **params
            New values by name.
        """
        known = self._parameter_names()
        for key, value in params.items():
            name, _, inner = key.partition("__")
            if name not in known:
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; it has {known}")
            if inner:
                getattr(self, name).set_params(**{inner: value})
            else:
                setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """The constructor's call, with the arguments that are not the default."""
        changed = [f"{name}={value!r}" for name, value in self._changed().items()]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        """scikit-learn's description of an estimator: the one of its base class."""
        from sklearn.base import BaseEstimator

        return BaseEstimator.__sklearn_tags__(self)

    def _check_fitted(self) -> None:
        """Refuse to go on before ``fit``."""
        if not self._fitted:
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit first")

    def _changed(self) -> dict[str, Any]:
        """The arguments of the constructor that are not the default."""
        signature = inspect.signature(type(self)).parameters
        params = self.get_params(deep=False)
        return {name: value for name, value in params.items() if not _same(value, signature[name].default)}

    @property
    def _fitted(self) -> bool:
        return any(name.endswith("_") and not name.startswith("_") for name in vars(self))

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return list(inspect.signature(cls).parameters)


def _same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and bool(value == default))
