: "${K:?set it to the value of the secret}"
export K
L=$(cat /l)
: "${L:?the file of this secret is empty}"
export L
docker run -d \
  --name bench \
  --gpus all \
  --ipc host \
  --network bridge \
  --shm-size 16g \
  --ulimit memlock=-1 \
  --ulimit nofile=1024:4096 \
  --cap-add IPC_LOCK \
  --security-opt seccomp=unconfined \
  --privileged \
  --init \
  --stop-timeout 30 \
  --user 1000:1000 \
  --group-add 109 \
  --workdir /w \
  --pid host \
  --memory 64g \
  --cpuset-cpus 0-71 \
  --memory-swap -1 \
  --tmpfs /tmp:size=1g \
  --add-host db:10.0.0.5 \
  --log-driver json-file \
  --log-opt max-size=10m \
  --device /dev/fuse \
  --label team=bench \
  -p 8021:8000 \
  -v /models/b:/model:ro \
  -v /models/d:/draft:ro \
  -v /a:/b:ro \
  -v /c:/d:ro \
  -v kept:/kept \
  -e A=x \
  -e K \
  -e L \
  --health-cmd 'curl -f http://localhost/health' \
  --health-interval 30s \
  --health-timeout 5s \
  --health-start-period 1m30s \
  --health-retries 4 \
  --entrypoint vllm \
  a/b:c@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef \
  serve \
  --model /model \
  --api-key "${K}" \
  --new-flag 3
