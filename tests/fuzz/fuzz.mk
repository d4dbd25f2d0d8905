# The fuzz targets and their seeds: make -f tests/fuzz/fuzz.mk fuzz
# Needs clang (libFuzzer). Everything goes to build-fuzz/.
CC     := $(shell command -v clang || ls /usr/bin/clang-[0-9]* | tail -n 1)
B      := build-fuzz
SAN    := address,undefined
CFLAGS := -O1 -g -fsanitize=fuzzer-no-link
include Makefile

FUZZ := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))

.PHONY: fuzz seeds
fuzz: $(FUZZ) seeds

$(B)/fuzz/%: tests/fuzz/%.c tests/fuzz/fuzz_importer.h $(LIBOBJ)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -o $@ $< $(LIBOBJ) -fsanitize=fuzzer $(LDFLAGS) $(LIBS)

seeds: tests/fuzz/seeds.py
	@$(PYTHON) tests/fuzz/seeds.py tests/data $(B)/seeds
