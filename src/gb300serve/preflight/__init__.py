"""Whether this machine can run a release as things stand: host facts against a plan, before anything is created."""
