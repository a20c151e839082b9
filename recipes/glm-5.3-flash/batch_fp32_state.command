docker run -d \
  --name glmf-daily \
  --gpus all \
  --network host \
  --shm-size 32g \
  -v /models/GLM-5.3-Flash-NVFP4:/model:ro \
  -e TORCHINDUCTOR_COMPILE_THREADS=1 \
  glmf-sglang:0.5.20-tf5.16.1 \
  python3 -m sglang.launch_server \
  --model-path /model \
  --host 0.0.0.0 \
  --port 30001 \
  --quantization modelopt_fp4 \
  --trust-remote-code \
  --served-model-name glm-5.3-flash \
  --tool-call-parser glm47 \
  --reasoning-parser glm45 \
  --context-length 131072 \
  --mem-fraction-static 0.90 \
  --cuda-graph-max-bs-decode 128 \
  --max-running-requests 128 \
  --max-prefill-tokens 8192 \
  --chunked-prefill-size 8192 \
  --kv-cache-dtype fp8_e4m3 \
  --mamba-full-memory-ratio 3.0
