# Stands for a service that is flaky: it fails as often as world/ill says. Exit status 75 is "not now".
ill=$(cat world/ill 2>/dev/null || echo 0)
if [ "$ill" -gt 0 ]; then
  echo $((ill - 1)) > world/ill
  echo "service unavailable" >&2
  exit 75
fi
echo "$1: ok"
