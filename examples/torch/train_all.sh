#!/bin/sh
# Trains one small model of each technique, into a folder: ./train_all.sh FOLDER
# About a minute each on one core; a checkpoint that is there already is kept. bench/techniques converts them all.
set -eu
folder=${1:?expected: train_all.sh FOLDER}
python=${PYTHON:-python3}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"

train() {
  name=$1
  shift
  if [ -e "$folder/$name.pt" ]; then return; fi
  echo "$name: kinglet-train $*"
  PYTHONPATH="$here${PYTHONPATH:+:$PYTHONPATH}" "$python" -m kinglet_torch.train "$@" -o "$folder/$name.part.pt"
  mv "$folder/$name.part.vocab.txt" "$folder/$name.vocab.txt"
  mv "$folder/$name.part.recipe.json" "$folder/$name.recipe.json"
  rm "$folder/$name.part.tokens.txt"
  mv "$folder/$name.part.pt" "$folder/$name.pt"
}

train full
train dpq-sx --input dpq
train dpq-vq --input dpq_vq
train kd --input kd
train shu --input shu
train slim-input --input slim
train slim-output --output slim
train slim --input slim --output slim
train slim-hashed --output slim_hashed
train hashnet --input hashed
train low-rank --input low_rank --output low_rank --tied table projection
train adaptive --input adaptive --output adaptive --tied tables projections
train define --input define
train class-factored --output class_factored
train everything --input binned --output slim --prune 0.4 --cache 200
