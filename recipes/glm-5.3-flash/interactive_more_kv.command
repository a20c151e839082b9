docker run -d \
  --name glmf-daily \
  --gpus all \
  --network host \
  --shm-size 32g \
  -v /models/GLM-5.3-Flash-NVFP4:/model:ro \
  -v /models/GLM-5.3-Flash-DFlash2:/draft:ro \
  -e TORCHINDUCTOR_COMPILE_THREADS=1 \
  glmf-sglang:0922-582389ce-revert39688-tf5.16.1 \
  python3 -m sglang.launch_server \
  --model-path /model \
  --host 0.0.0.0 \
  --port 30001 \
  --quantization modelopt_fp4 \
  --trust-remote-code \
  --served-model-name glm-5.3-flash \
  --tool-call-parser glm47 \
  --reasoning-parser glm45 \
  --context-length 1048576 \
  --mem-fraction-static 0.85 \
  --cuda-graph-max-bs-decode 16 \
  --max-running-requests 16 \
  --max-prefill-tokens 8192 \
  --chunked-prefill-size 8192 \
  --kv-cache-dtype fp8_e4m3 \
  --speculative-algorithm DFLASH \
  --speculative-draft-model-path /draft \
  --speculative-draft-attention-backend fa4 \
  --speculative-dflash-block-size 7 \
  --enable-linear-replayssm-spec
