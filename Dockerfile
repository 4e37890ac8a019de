# The server with the included models: docker build -t nmt . && docker run --rm -p 127.0.0.1:8000:8000 nmt
FROM python:3.12-slim

# torch for the CPU alone: the default wheel also brings several GB of CUDA libraries.
COPY constraints.txt /tmp/constraints.txt
RUN pip install --no-cache-dir --index-url https://download.pytorch.org/whl/cpu "$(grep '^torch==' /tmp/constraints.txt)"

WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY requirements requirements
COPY nmt nmt
COPY configs configs
COPY data/sample data/sample
COPY models models
RUN pip install --no-cache-dir --no-deps --require-hashes -r requirements/base.txt -r requirements/serve.txt \
 && pip install --no-cache-dir --no-build-isolation -c constraints.txt '.[serve]' && rm -rf /src/*

# Runs are read from /runs; nothing is written there. Kubernetes' runAsNonRoot needs the number of the user.
RUN useradd --uid 1000 --create-home nmt
USER 1000
WORKDIR /home/nmt
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health')"]
ENTRYPOINT ["nmt", "serve", "host=0.0.0.0"]
CMD ["run_dirs=[en-vi,vi-en]"]
