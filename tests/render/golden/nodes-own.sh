: 'bench/v1 on 2 Stations: paste all of this on each Station'
: "${LEADER_ADDRESS:?set it to the address of the leader Station}"
: "${NODE_RANK:?set it to 0 on the leader Station, and to 1 on the other}"
: "${VLLM_HOST_IP:?set it to the address of this Station}"
export VLLM_HOST_IP
: "${KEY:?set it to the value of the secret}"
export KEY
case "${NODE_RANK}" in
0) : 'Station 1 of 2: the leader, which answers on port 30006'
docker run -d \
  --name bench \
  --gpus 1 \
  --ipc host \
  --network host \
  -v /models/b:/model:ro \
  -e KEY \
  -e VLLM_HOST_IP \
  lab/engine:v1 \
  --model /model \
  --pipeline-parallel-size 2 \
  --api-key "${KEY}" \
  --port 30006 \
  --nnodes 2 \
  --node-rank 0 \
  --master-addr "${LEADER_ADDRESS}"
;;
1) : 'Station 2 of 2: the worker'
docker run -d \
  --name bench \
  --gpus 1 \
  --ipc host \
  --network host \
  -v /models/b:/model:ro \
  -e KEY \
  -e VLLM_HOST_IP \
  lab/engine:v1 \
  --model /model \
  --pipeline-parallel-size 2 \
  --api-key "${KEY}" \
  --port 30006 \
  --nnodes 2 \
  --node-rank "${NODE_RANK}" \
  --master-addr "${LEADER_ADDRESS}" \
  --headless
;;
esac
