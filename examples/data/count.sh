# The sum of each city's numbers in some files.
cat "$@" | awk -F, '{ sum[$1] += $2 } END { for (city in sum) print city "," sum[city] }' | sort
