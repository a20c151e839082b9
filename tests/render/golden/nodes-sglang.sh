: 'bench/v1 on 2 Stations: paste all of this on each Station'
: "${LEADER_ADDRESS:?set it to the address of the leader Station}"
: "${NODE_RANK:?set it to 0 on the leader Station, and to 1 on the other}"
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
  lab/engine:v1 \
  --model-path /model \
  --tp-size 2 \
  --port 30006 \
  --nnodes 2 \
  --node-rank 0 \
  --dist-init-addr "${LEADER_ADDRESS}":20000
;;
1) : 'Station 2 of 2: the worker'
docker run -d \
  --name bench \
  --gpus 1 \
  --ipc host \
  --network host \
  -v /models/b:/model:ro \
  -e KEY \
  lab/engine:v1 \
  --model-path /model \
  --tp-size 2 \
  --port 30006 \
  --nnodes 2 \
  --node-rank "${NODE_RANK}" \
  --dist-init-addr "${LEADER_ADDRESS}":20000
;;
esac
