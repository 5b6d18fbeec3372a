#!/usr/bin/env bash
# Run the tests of `make test` where something is missing, and the slow ones that use it. Usage: tests/matrix.sh [CASE ...], all by default.
#   compiler  no C or C++ compiler on the PATH     chromium  no browser on the PATH
#   shared    a clone without ../shared beside it  home      a home folder that cannot be written
#   root      as the user nobody (needs root)      locale    LC_ALL=C
#   bare      all of it at once
# PYTEST_ADDOPTS="--order 7" runs them in a random order. Each case prints one line: the case, pytest's summary, the reasons of its skips. Logs are in $LOGS.
set -euo pipefail
cd "$(dirname "$0")/.."
top=$PWD
cases=${*:-compiler chromium shared home root locale bare}
LOGS=${LOGS:-$(mktemp -d)}
work=$(mktemp -d)
chmod 755 "$work"
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

# path_without PATTERN: print a PATH whose only folder links every command but those that match.
path_without() {
  local folder
  folder=$(mktemp -d -p "$work")
  chmod 755 "$folder"
  IFS=: read -ra folders <<<"$PATH"
  for from in "${folders[@]}"; do
    for file in "$from"/*; do
      [[ -x $file && ! -e $folder/${file##*/} && ! ${file##*/} =~ $1 ]] && ln -s "$file" "$folder/" || true
    done
  done
  echo "$folder"
}
compilers='^(.*-)?(gcc|g\+\+|cc|c\+\+|clang|clang\+\+|c89|c99)(-[0-9.]+)?$'
browsers='^(chromium|google-chrome)'

# As nobody, the clone is nobody's own, and so are its caches.
run() {
  local name=$1 place=$top path=$PATH home=$HOME locale=${LC_ALL:-${LANG:-C.UTF-8}} as=() slow=()
  case $name in
    compiler) path=$(path_without "$compilers"); slow=(tests/metagradient) ;;
    chromium) path=$(path_without "$browsers"); slow=(tests/page) ;;
    bare) path=$(path_without "$compilers|$browsers"); slow=(tests/metagradient tests/page) ;;
  esac
  if [[ $name =~ ^(shared|root|bare)$ ]]; then
    place=$work/$name/firststep
    git clone -q "$top" "$place"
    ln -s "$top/.venv" "$place/.venv"
    [[ $name != root || ! -e $top/../shared ]] || ln -s "$(realpath "$top/../shared")" "$work/$name/shared"
  fi
  if [[ $name =~ ^(home|bare)$ ]]; then
    home=$work/home-of-$name
    mkdir -m 555 "$home"
  fi
  if [[ $name =~ ^(root|home|bare)$ ]]; then # root could write anywhere
    [[ $(id -u) = 0 ]] || { echo "$name: needs root, to become another user"; return 0; }
    [[ $name = home ]] && { place=$work/$name/firststep; git clone -q "$top" "$place"; ln -s "$top/.venv" "$place/.venv"; }
    [[ $name = root ]] && { home=$work/home-of-root; mkdir "$home"; chown nobody "$home"; }
    chown -R -h nobody "$work/$name"
    as=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
  fi
  [[ $name =~ ^(locale|bare)$ ]] && locale=C
  (
    cd "$place"
    tests=(env PATH="$path" HOME="$home" LC_ALL="$locale" LANG="$locale" PYTHONPATH="$place/src" OMP_NUM_THREADS=1
      "${as[@]}" "$top/.venv/bin/python" -m pytest -q -n 3 --dist worksteal -p no:cacheprovider)
    [[ ${#slow[@]} = 0 ]] || "${tests[@]}" -m slow "${slow[@]}"
    "${tests[@]}" -m 'not slow'
  ) >"$LOGS/$name.log" 2>&1 || failed=1
  echo "$name: $(tail -n 1 "$LOGS/$name.log")"
  grep -E '^SKIPPED' "$LOGS/$name.log" | sed -E 's/^SKIPPED \[[0-9]+\] [^ ]+ /    skipped: /' | sort | uniq -c || true
}

failed=0
for name in $cases; do run "$name"; done
echo "Logs: $LOGS"
exit $failed
