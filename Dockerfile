FROM python:3.13-slim
COPY pyproject.toml README.md LICENSE /src/
COPY src /src/src
RUN pip install --no-cache-dir "/src[serve]" \
    && useradd --create-home --uid 1000 headgate \
    && install --directory --owner=headgate --mode=0700 /home/headgate/home
USER headgate
ENV HEADGATE_HOME=/home/headgate/home
VOLUME /home/headgate/home
EXPOSE 8321
# The port is published on the machine's loopback address by compose.yaml; a proxy with https stands before any other.
CMD ["headgate", "serve", "--host", "0.0.0.0", "--behind-proxy"]
