: 'bench/v1 on 3 Stations: paste all of this on each Station'
: "${LEADER_ADDRESS:?set it to the address of the leader Station}"
: "${NODE_RANK:?set it to 0 on the leader Station, and to a number of its own up to 2 on each other}"
: "${VLLM_HOST_IP:?set it to the address of this Station}"
export VLLM_HOST_IP
: "${KEY:?set it to the value of the secret}"
export KEY
case "${NODE_RANK}" in
0) : 'Station 1 of 3: the leader, which answers on port 8000'
docker run -d \
  --name bench \
  --gpus 1 \
  --ipc host \
  --network host \
  -v /models/b:/model:ro \
  -e KEY \
  -e VLLM_HOST_IP \
  --entrypoint /bin/bash \
  lab/engine:v1 \
  -c 'ray start --head --port=6379 && shift && exec "$@"' leader "${LEADER_ADDRESS}" vllm serve \
  --model /model \
  --pipeline-parallel-size 3 \
  --distributed-executor-backend ray
;;
1|2) : 'Stations 2 to 3 of 3: a worker each'
docker run -d \
  --name bench \
  --gpus 1 \
  --ipc host \
  --network host \
  -v /models/b:/model:ro \
  -e KEY \
  -e VLLM_HOST_IP \
  --entrypoint /bin/bash \
  lab/engine:v1 \
  -c 'until ray start --address="$1:6379" --block; do sleep 5; done' worker "${LEADER_ADDRESS}"
;;
esac
