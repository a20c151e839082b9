docker run -d \
  --name dsv41-sglang \
  --gpus all \
  --ipc host \
  --network host \
  -v /models/DeepSeek-V4.1-Flash-df42c109f1defefcbfcedbe7d905718a12266e40:/model:ro \
  -v /srv/gb300serve/patches/deepseek-v4.1-flash-sglang/deepseek_v4.py:/sgl-workspace/sglang/python/sglang/srt/models/deepseek_v4.py:ro \
  -e SGLANG_ENABLE_DSV41_ENGRAM_HOST_TABLE=1 \
  lmsysorg/sglang \
  python3 -m sglang.launch_server \
  --model-path /model \
  --tp-size 1 \
  --offload-group-size 8 \
  --offload-num-in-group 3
