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
  --init \
  --stop-timeout 30 \
  --user 1000:1000 \
  --workdir /w \
  --pid host \
  --memory 64g \
  --tmpfs /tmp:size=1g \
  --log-driver json-file \
  --log-opt max-size=10m \
  --device /dev/fuse \
  --label team=bench \
  -p 8021:8000 \
  -v /models/b:/model:ro \
  -v /models/d:/draft:ro \
  -v /a:/b:ro \
  -v /c:/d:ro \
  -e A=x \
  -e K \
  -e L \
  --entrypoint vllm \
  a/b:c@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef \
  serve \
  --model /model \
  --api-key "${K}" \
  --new-flag 3
