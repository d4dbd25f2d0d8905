# opscope: GNU make. All output goes to build/ (or build-<variant>/).
#   make             the program and the library
#   make test-unit   build and run the unit tests
#   make SAN=address,undefined   the same with sanitizers, in build-san/
CC      ?= cc
SAN     ?=
B       ?= build$(if $(SAN),-$(subst $(comma),-,$(SAN)))
comma   := ,
VERSION := $(shell cat VERSION)

CFLAGS  ?= -O2 -g
ALL_CFLAGS := -std=gnu11 -Wall -Wextra -Wshadow -Wstrict-prototypes \
	-Wmissing-prototypes -Wvla -fvisibility=hidden -fPIC -fno-omit-frame-pointer \
	-pthread -Isrc -Iinclude -DOPS_VERSION='"$(VERSION)"' -D_GNU_SOURCE \
	$(CFLAGS) $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all)
LIBS    := -lisal -lzstd -liberty -lm -pthread
LDFLAGS += $(if $(SAN),-fsanitize=$(SAN))

SRC     := $(sort $(wildcard src/*/*.c))
MAIN    := src/cmd/main.c
OBJ     := $(patsubst src/%.c,$(B)/obj/%.o,$(filter-out $(MAIN),$(SRC)))
LIBOBJ  := $(filter-out $(B)/obj/cmd/%,$(OBJ))
UNIT    := $(patsubst tests/unit/%.c,$(B)/unit/%,$(wildcard tests/unit/test_*.c))

.DELETE_ON_ERROR:
.PHONY: all clean test-unit layers

all: layers $(B)/opscope

layers:
	@if [ -f tools/layers.py ]; then $(PYTHON) tools/layers.py; fi

PYTHON ?= $(shell [ -x /usr/bin/python3 ] && echo /usr/bin/python3 || echo python3)

$(B)/opscope: $(B)/obj/cmd/main.o $(OBJ)
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

$(B)/obj/%.o: src/%.c Makefile VERSION
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/unit/%: tests/unit/%.c $(OBJ) Makefile
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -Itests -o $@ $< $(OBJ) $(LDFLAGS) -lcmocka $(LIBS)

unit: $(UNIT)
test-unit: $(UNIT)
	@for t in $(UNIT); do $$t || exit 1; done

clean:
	rm -rf build build-*

-include $(wildcard $(B)/obj/*/*.d $(B)/unit/*.d)
