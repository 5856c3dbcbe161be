"""The errors of calls: one class for each code of the service."""

from typing import Any, Dict, Mapping, Optional, Type


class ChannelTranscriptsError(Exception):
    """The error of a failed call. A code that this version does not know has this class."""

    #: The stable code.
    code: str = ""
    _classes: Dict[str, Type["ChannelTranscriptsError"]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "code" in cls.__dict__:
            ChannelTranscriptsError._classes[cls.code] = cls

    def __init__(
        self,
        message: str,
        *,
        code: Optional[str] = None,
        status: Optional[int] = None,
        retryable: bool = False,
        retry_after: Optional[float] = None,
        request_id: Optional[str] = None,
        docs: Optional[str] = None,
        fields: Optional[Mapping[str, Any]] = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code
        #: The HTTP status; None without a response.
        self.status = status
        #: Whether the same call can succeed later.
        self.retryable = retryable
        #: Seconds to wait before a retry, if the service sent them.
        self.retry_after = retry_after
        #: Identifies the request in the log of the service.
        self.request_id = request_id
        #: The address of the section about the code in the documentation of the service.
        self.docs = docs
        #: The additional fields of the error body.
        self.fields: Dict[str, Any] = dict(fields or {})


def error_class(code: str) -> Type[ChannelTranscriptsError]:
    return ChannelTranscriptsError._classes.get(code, ChannelTranscriptsError)


class UnexpectedResponseError(ChannelTranscriptsError):
    """The response is not from the service, but for example from a proxy."""

    code = "unexpected_response"


class NoResponseError(ChannelTranscriptsError):
    """There was no complete response: the service could not be reached, or the connection was lost."""

    code = "no_response"


class InvalidRequestError(ChannelTranscriptsError):
    code = "invalid_request"


class UnauthorizedError(ChannelTranscriptsError):
    code = "unauthorized"


class InvalidApiKeyError(ChannelTranscriptsError):
    code = "invalid_api_key"


class InvalidTokenError(ChannelTranscriptsError):
    code = "invalid_token"


class PlanLimitExceededError(ChannelTranscriptsError):
    """``fields`` has ``limit``, ``used``, ``reserved``, ``required``, ``resetAt`` and ``scope``."""

    code = "plan_limit_exceeded"


class FeatureNotInPlanError(ChannelTranscriptsError):
    code = "feature_not_in_plan"


class ScopeMissingError(ChannelTranscriptsError):
    code = "scope_missing"


class OrganizationNotLinkedError(ChannelTranscriptsError):
    code = "organization_not_linked"


class ClientBlockedError(ChannelTranscriptsError):
    code = "client_blocked"


class AdminRoleRequiredError(ChannelTranscriptsError):
    code = "admin_role_required"


class ChannelNotFoundError(ChannelTranscriptsError):
    code = "channel_not_found"


class VideoNotFoundError(ChannelTranscriptsError):
    code = "video_not_found"


class PlaylistNotFoundError(ChannelTranscriptsError):
    code = "playlist_not_found"


class JobNotFoundError(ChannelTranscriptsError):
    code = "job_not_found"


class SubscriptionNotFoundError(ChannelTranscriptsError):
    code = "subscription_not_found"


class NotFoundError(ChannelTranscriptsError):
    code = "not_found"


class MethodNotAllowedError(ChannelTranscriptsError):
    code = "method_not_allowed"


class ConflictError(ChannelTranscriptsError):
    code = "conflict"


class JobFinishedError(ChannelTranscriptsError):
    code = "job_finished"


class IdempotencyConflictError(ChannelTranscriptsError):
    code = "idempotency_conflict"


class ResultsExpiredError(ChannelTranscriptsError):
    """Of a subscription or the feed: ``fields["oldest"]`` is the cursor from which one can go on."""

    code = "results_expired"


class CursorUnknownError(ChannelTranscriptsError):
    """The database was restored to an earlier point. ``fields["oldest"]`` is the cursor from which one can go on."""

    code = "cursor_unknown"


class RateLimitedError(ChannelTranscriptsError):
    code = "rate_limited"


class TooManyJobsError(ChannelTranscriptsError):
    code = "too_many_jobs"


class TooManySubscriptionsError(ChannelTranscriptsError):
    code = "too_many_subscriptions"


class InternalError(ChannelTranscriptsError):
    code = "internal_error"


class ServiceUnavailableError(ChannelTranscriptsError):
    code = "service_unavailable"


class UpstreamFailureError(ChannelTranscriptsError):
    code = "upstream_failure"


class UpstreamBlockedError(ChannelTranscriptsError):
    code = "upstream_blocked"


class UpstreamBusyError(ChannelTranscriptsError):
    code = "upstream_busy"


class UpstreamTimeoutError(ChannelTranscriptsError):
    code = "upstream_timeout"


class TranscriptUnavailableError(ChannelTranscriptsError):
    code = "transcript_unavailable"


class LanguageUnavailableError(ChannelTranscriptsError):
    """``fields["captionTracks"]`` lists the tracks that the video has."""

    code = "language_unavailable"


class VideoUnavailableError(ChannelTranscriptsError):
    code = "video_unavailable"


class VideoPrivateError(ChannelTranscriptsError):
    code = "video_private"


class VideoMembersOnlyError(ChannelTranscriptsError):
    code = "video_members_only"


class VideoAgeRestrictedError(ChannelTranscriptsError):
    code = "video_age_restricted"


class VideoNotLiveYetError(ChannelTranscriptsError):
    code = "video_not_live_yet"


class VideoLiveError(ChannelTranscriptsError):
    code = "video_live"
