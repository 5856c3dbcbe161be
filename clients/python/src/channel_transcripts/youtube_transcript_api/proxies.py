"""The settings of proxies, so that programs that pass them run. The service has its own ways to YouTube and uses none of them."""

import re
from typing import Dict, List, Optional


class InvalidProxyConfig(Exception):
    pass


class ProxyConfig:
    def to_requests_dict(self) -> Dict[str, str]:
        raise NotImplementedError(f"{type(self).__name__} does not implement to_requests_dict.")

    @property
    def prevent_keeping_connections_alive(self) -> bool:
        return False

    @property
    def retries_when_blocked(self) -> int:
        return 0


class GenericProxyConfig(ProxyConfig):
    def __init__(self, http_url: Optional[str] = None, https_url: Optional[str] = None) -> None:
        given = http_url or https_url
        if not given:
            raise InvalidProxyConfig("Pass http_url, https_url, or both.")
        self._urls = {"http": http_url or given, "https": https_url or given}

    @property
    def http_url(self) -> str:
        return self._urls["http"]

    @property
    def https_url(self) -> str:
        return self._urls["https"]

    def to_requests_dict(self) -> Dict[str, str]:
        return dict(self._urls)


class WebshareProxyConfig(GenericProxyConfig):
    def __init__(
        self,
        proxy_username: str,
        proxy_password: str,
        filter_ip_locations: Optional[List[str]] = None,
        retries_when_blocked: int = 10,
        domain_name: str = "p.webshare.io",
        proxy_port: int = 80,
    ) -> None:
        user = "-".join([re.sub("-rotate$", "", proxy_username), *map(str.upper, filter_ip_locations or []), "rotate"])
        super().__init__(f"http://{user}:{proxy_password}@{domain_name}:{proxy_port}/")
        self._retries_when_blocked = retries_when_blocked

    @property
    def url(self) -> str:
        return self.http_url

    @property
    def prevent_keeping_connections_alive(self) -> bool:
        return True

    @property
    def retries_when_blocked(self) -> int:
        return self._retries_when_blocked
