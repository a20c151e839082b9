docker run -d \
  --name glm53-big \
  --gpus all \
  --network host \
  --shm-size 32g \
  -v /models/GLM-5.3-NVFP4-54e52520606f96b3d9fc84088ad22882a61648ac:/model:ro \
  -v /srv/gb300serve/cache/glm-5.3-big:/root/.cache/vllm \
  -v /srv/gb300serve/patches/glm-5.3-big/sitecustomize-bigv1.py:/usr/lib/python3.12/sitecustomize.py:ro \
  -e VLLM_LOGGING_LEVEL=INFO \
  -e VLLM_API_KEY \
  vllm-glm53-uva:v0.28.0-2cf0a691 \
  /model \
  --host 0.0.0.0 \
  --port 30001 \
  --served-model-name glm-5.3-big \
  --trust-remote-code \
  --quantization modelopt \
  --load-format safetensors \
  --offload-backend uva \
  --cpu-offload-gb 188 \
  --cpu-offload-params routed_experts.w13_weight routed_experts.w2_weight \
  --gpu-memory-utilization 0.95 \
  --kv-cache-dtype bfloat16 \
  --kv-cache-memory-bytes 8589934592 \
  --max-model-len 65536 \
  --max-num-seqs 4 \
  --max-num-batched-tokens 8192 \
  --enable-auto-tool-choice \
  --tool-call-parser glm47 \
  --reasoning-parser glm45
