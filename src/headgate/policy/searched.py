"""Where a search looks: the visible streams that have fields for its kind of search."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.errors import ConnectionNotFound, InvalidRequest, Unsupported
from headgate.model.query import Filter, SearchMode, SearchQuery
from headgate.policy import clauses
from headgate.policy.allowance import Allowance, StreamScope
from headgate.policy.choose import choose, of_connector


def searched_scopes(allowance: Allowance, query: SearchQuery) -> tuple[StreamScope, ...]:
    """Find the streams that a search looks at."""
    if query.mode is not SearchMode.LEXICAL and not allowance.rules.has_meaning:
        raise Unsupported(f"This server has no {query.mode} search.", param="mode")
    return tuple(scope for scope in _named(allowance, query) if _is_searched(scope, query.mode))


def _named(allowance: Allowance, query: SearchQuery) -> tuple[StreamScope, ...]:
    scopes = allowance.scopes
    if query.streams is not None:
        if not allowance.access.is_owner:
            for name in query.streams:
                # The refusal is the same as for reading it.
                if name not in allowance.by_stream:
                    choose(allowance, name, None)
        scopes = tuple(scope for scope in scopes if scope.stream in query.streams)
    if query.connector_key is not None:
        # A connector without such streams is searched, and has no hits; one that is not visible is refused.
        of_connector(allowance.scopes, query.connector_key)
        scopes = tuple(scope for scope in scopes if scope.connector_key == query.connector_key)
    if query.connection_id is None:
        return scopes
    if not any(scope.on(query.connection_id) for scope in allowance.scopes):
        raise ConnectionNotFound(param="connection_id")
    return tuple(found for scope in scopes if (found := scope.on(query.connection_id)) is not None)


def _is_searched(scope: StreamScope, mode: SearchMode) -> bool:
    by_words = mode is not SearchMode.SEMANTIC and bool(scope.capability.searchable())
    return by_words or (mode is not SearchMode.LEXICAL and bool(scope.capability.comparable()))


def search_filters(scopes: Sequence[StreamScope], query: SearchQuery) -> tuple[Filter, ...]:
    """Read the filters of a search, which mean the same in every stream that it looks at."""
    made = {clauses.filters(scope, query.filters) for scope in scopes}
    if len(made) > 1:
        raise InvalidRequest("The filter means different things in several sources.", param="filter")
    return next(iter(made), ())
