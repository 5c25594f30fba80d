#!/bin/sh
# The examples as a newcomer meets them, compiled with the cc command of their first lines (tests/examples/compile.sh):
# each does what it says, right and wrong command lines alike. `command_lines.sh FOLDER`, where they are;
# PTXGEN_CUDA_LIBRARY names the driver.
build=$1
passed=0
failed=0

check() { # name, expected status, expected words, command ...
    name=$1
    status=$2
    words=$3
    shift 3
    out=$("$@" 2>&1)
    got=$?
    if [ "$got" -eq "$status" ] && echo "$out" | grep -q -- "$words"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "failed: $name: exit status $got, not $status, or not '$words' in:"
        echo "$out"
    fi
}

sources=$(ls examples/*.c)
if command -v c++ >/dev/null 2>&1; then sources="$sources $(ls examples/*.cpp)"; else echo "skip: there is no c++"; fi

# The command line is one table in every example but saxpy, which has none; only generate and ptxdump take arguments.
for source in $sources; do
    example=$(basename "${source%.*}")
    if [ "$example" = saxpy ]; then continue; fi
    check "$example --help" 0 "--help  *this text" "$build/$example" --help
    check "an unknown option of $example" 2 "--colour: unknown option; --help lists" \
        "$build/$example" --colour red
    case $example in
    generate | ptxdump)
        check "too many arguments of $example" 2 "one argument too many" "$build/$example" a 1 90 d
        ;;
    *) check "an argument of $example" 2 "seq=1: not an option; --help lists" "$build/$example" seq=1 ;;
    esac
done

check "saxpy" 0 " 0 wrong" "$build/saxpy"
check "prefix sums" 0 "300001 elements in 147 tiles, 0 wrong" "$build/scan" --n 300001
check "prefix sums of one element" 0 "1 elements in 1 tiles, 0 wrong" "$build/scan" --n 1
check "wgmma" 0 ", 0 wrong" "$build/wgmma"
check "wgmma elsewhere" 0 "wgmma: not run: .* has no compute capability 9.0" env PTXSIM_DEVICE=sm_80 "$build/wgmma"
check "a picture that cannot be written" 1 "/nowhere/x.png: No such file" \
    "$build/mandelbrot" --width 8 --height 8 --out /nowhere/x.png
graph="$build/shader_graph"
check "a graph without its third colour" 2 "    ^ ',' is missing here" "$graph" --graph "x, y"
check "a graph with an unknown name" 2 "     ^ neither a name" "$graph" --graph "x,y, foo(x)"
check "a graph with too few arguments" 2 "         ^ ',' is missing" "$graph" --graph "x,y,min(x)"
check "a graph with more behind it" 2 "      ^ the text should end here" "$graph" --graph "x,y,1 2"
check "a graph that is empty" 2 "^^ a number, a name" "$graph" --graph ""
decode=$build/flash_decode
check "attention, small" 0 ": ok" "$decode" --heads 4 --kv-heads 2 --head-dim 64 --lengths 0,1,70 --repeat 1
check "attention, bf16" 0 ": ok" \
    "$decode" --heads 7 --kv-heads 1 --head-dim 40 --type bf16 --lengths 33 --repeat 1
check "attention, f32" 0 ": ok" \
    "$decode" --heads 3 --kv-heads 3 --head-dim 256 --type f32 --lengths 9 --repeat 1
check "attention, nothing cached" 0 ": ok" "$decode" --lengths 0 --repeat 1
check "a dimension that is no multiple of 8" 2 "head_dim" "$decode" --head-dim 20
check "no heads" 2 "heads" "$decode" --heads 0
check "heads that are no multiple" 2 "kv_heads" "$decode" --heads 32 --kv-heads 5
check "an unknown type" 2 "f64" "$decode" --type f64
check "an empty length" 2 "lengths" "$decode" --lengths 1,,2
prefill=$build/flash_prefill
check "a prompt, small" 0 ": ok" "$prefill" --seq 70 --heads 2 --kv-heads 1 --head-dim 64
check "a prompt, f32, window" 0 ": ok" "$prefill" --seq 50 --type f32 --head-dim 40 --window 20 --causal 0
check "a prompt of nothing" 2 "'0' is no whole number from 1" "$prefill" --seq 0
check "a long launch tells how far it is" 0 "flash_prefill[a-z0-9_]*: [0-9]* of [0-9]* blocks begun" \
    env PTXSIM_PROGRESS=1 "$prefill" --seq 512 --heads 2 --kv-heads 1 --head-dim 64
check "a head_dim that prefill refuses" 2 "head_dim is 512" "$prefill" --head-dim 512
check "a token loop and its graph" 0 "the same bits" "$build/incremental_attention" --tokens 5
check "no tokens" 2 "from 1 to 256" "$build/incremental_attention" --tokens 0
gemv=$build/q4k_gemv
check "GEMV, small" 0 ": ok" "$gemv" --n 33 --k 512 --repeat 1
check "GEMV, 8-bit x, 3 columns, no norm" 0 ": ok" \
    "$gemv" --n 20 --k 1280 --columns 3 --precision fast --norm 0 --repeat 1
head -c 1440 /dev/zero >"$build/zeros.q4k"
check "GEMV, blocks from a file" 0 ": ok" "$gemv" --n 5 --k 512 --file "$build/zeros.q4k" --repeat 1
check "GEMV, a file that is too short" 2 "fewer" "$gemv" --n 6 --k 512 --file "$build/zeros.q4k"
check "GEMV, a file that is too long" 2 "more" "$gemv" --n 4 --k 512 --file "$build/zeros.q4k"
check "GEMV, a folder" 2 "cannot be read: Is a directory" "$gemv" --n 3 --k 256 --file .
check "errors of 0 are beside their own tolerance" 0 "error      0 at worst beside a tolerance of [0-9.]*e-" \
    "$decode" --lengths 1 --repeat 1 --type f32
check "GEMV, no such file" 2 "cannot be read: No such file" "$gemv" --n 4 --k 512 --file /nowhere/q4k
rm -f "$build/zeros.q4k"
check "a K that is no multiple of 256" 2 "k is 1000" "$gemv" --k 1000
check "nine columns" 2 "columns is 9" "$gemv" --columns 9
check "an unknown precision" 2 "f64" "$gemv" --precision f64
gemm=$build/gemm
check "a matrix product, small" 0 ": ok" "$gemm" --m 70 --n 50 --k 100 --repeat 1
check "bytes that TMA copies are counted" 0 "; [0.]*[1-9][0-9.]* MB were counted in sectors of 32 and by TMA" \
    "$gemm" --m 128 --n 128 --k 256 --repeat 1
check "a matrix product, f32, batch" 0 ": ok" "$gemm" --m 5 --n 9 --k 77 --type f32 --batch 2 --pad 1 --repeat 1
check "a matrix product, 8 bits" 0 ": ok" \
    "$gemm" --m 33 --n 64 --k 130 --type e4m3 --out bf16 --factors block --bias 1 --activation silu --repeat 1
check "a matrix product, s8, transposed" 0 ": ok" \
    "$gemm" --m 16 --n 40 --k 64 --type s8 --factors row --trans-a 1 --trans-b 0 --beta 2 --repeat 1
check "a matrix product without a sum" 0 ": ok" "$gemm" --m 4 --n 4 --k 0 --repeat 1
check "a matrix product of quantised weights" 0 " ok" "$gemm" --m 9 --n 50 --format q4_k --repeat 1
check "a matrix product of weights whose codes are places in a table" 0 " ok" \
    "$gemm" --m 9 --n 50 --format iq2_s --precision fast --type f32 --repeat 1
check "a matrix product of weights of bytes and factors" 0 " ok" \
    "$gemm" --m 9 --n 131 --k 272 --format e4m3 --factors square --type bf16 --bias 1 --repeat 1
check "a matrix product of weights of 8-bit integers and factors" 0 " ok" \
    "$gemm" --m 70 --n 20 --k 144 --format s8 --factors block --type f32 --out f16 --repeat 1
check "the plan of a product of weights" 0 "^launch 1 " "$gemm" --m 9 --n 50 --format e5m2 --factors row --plan 1
check "the plan of a product of weights, no product" 1 "" \
    sh -c '"$1" --m 9 --n 50 --format q8_0 --plan 1 | grep "^time"' sh "$gemm"
check "factors of blocks" 2 "factors is 2, must be 0 where no weights are PTX_E4M3" \
    "$gemm" --format q8_0 --factors row
check "a format that is none" 2 "'q7' is none of plain|f32|.*|e5m2|s8; --help" "$gemm" --format q7
check "quantised weights and a batch" 2 "--format takes" "$gemm" --format q4_k --batch 2
check "quantised weights of a part of a block" 2 "gemm: k is 100" "$gemm" --format q6_k --k 100
check "factors that a type has not" 2 "a_factors is 3" "$gemm" --factors block
check "too many tiles" 2 "2^31 - 1 tiles" "$gemm" --m 1073741824 --n 1073741824
generate=$build/generate
model=tests/model/fables.gguf
check "a model writes text" 0 "^Once upon a time[^ ]* [a-z]" "$generate" $model "Once upon a time" --tokens 3
check "a model's tokens are counted" 0 "; 3 tokens written" "$generate" $model "The king" --tokens 3 --graph
printf 'sm = 90\nsms = 3\n' >"$build/small.device"
export TORCHELASTIC_RUN_ID=command_lines-$$ # tells ranks of this run from those of others
check "a rank without the number of ranks" 1 "generate: RANK is set, and WORLD_SIZE is not" \
    env RANK=0 "$generate" $model x
check "a rank whose others are missing" 1 \
    "of 3 ranks these have not come to 127.0.0.1, port [0-9]*, in 1 seconds: 1, 2" \
    env RANK=0 WORLD_SIZE=3 PTXGEN_RANKS_TIMEOUT=1 "$generate" $model x
check "a rank whose first is missing" 1 "generate: rank 1: rank 0 of 2 does not answer at 127.0.0.1, ports " \
    env RANK=1 WORLD_SIZE=2 PTXGEN_RANKS_TIMEOUT=1 "$generate" $model x
check "several ranks in one launch" 2 "^generate: --persistent: several ranks go by launches or --graph" \
    env RANK=0 WORLD_SIZE=2 "$generate" $model x --persistent
check "ranks without NCCL, told once" 0 "^1$" sh -c \
    'export WORLD_SIZE=2 PTXGEN_NCCL_LIBRARY=/nowhere.so; { RANK=1 "$1" "$2" x & RANK=0 "$1" "$2" x; wait; } 2>&1 |
     grep -c "2 ranks need NCCL: /nowhere.so: .*PTXGEN_NCCL_LIBRARY"' sh "$generate" $model
check "ranks of two command lines" 0 "^generate: rank 1: command line: not that of rank 0; all ranks need the same" \
    sh -c 'export WORLD_SIZE=2; { RANK=1 "$1" "$2" x --tokens 2 & RANK=0 "$1" "$2" x --tokens 3; wait; } 2>&1' \
    sh "$generate" $model
mkdir -p "$build/ranks"
{ cat $model && echo; } >"$build/ranks/fables.gguf"
check "ranks of two files" 0 "^generate: rank 1: fables.gguf: not that of rank 0" sh -c \
    'export WORLD_SIZE=2; g=$(cd "${1%/*}" && pwd)/generate
     { (cd "$3" && RANK=1 "$g" fables.gguf x) & cd "${2%/*}" && RANK=0 "$g" fables.gguf x; wait; } 2>&1' \
    sh "$generate" $model "$build/ranks"
LC_ALL=C sed s/llama/olmo2/g $model >"$build/ranks/olmo2.gguf"
check "a model that the persistent kernel does not have: told before it is loaded" 1 \
    "^generate: --persistent: the persistent kernel does not have: norms behind products; --graph" \
    "$generate" "$build/ranks/olmo2.gguf" x --persistent
rm -r "$build/ranks"
check "all tokens in one launch" 0 "; 2 tokens written" \
    env PTXSIM_DEVICE="$build/small.device" "$generate" $model "The king" --tokens 2 --persistent
rm -f "$build/small.device"
check "the text is whole before the figures" 0 "^Once upon a time" \
    sh -c "\"\$1\" \"\$2\" 'Once upon a time' --tokens 2 2>&1 | grep -v ' %\$' | head -n 1" sh "$generate" $model
check "a text without a prompt does not begin with a space" 0 "^[^ ]" \
    sh -c "\"\$1\" \"\$2\" '' --tokens 1 2>/dev/null" sh "$generate" $model
check "a drawn text" 0 "; 3 tokens" \
    "$generate" $model "" --tokens 3 --temperature 1 --top-k 5 --top-p 0.9 --seed 7
check "an option with its value behind =" 0 "; 2 tokens written" "$generate" $model x --tokens=2
check "a flag with a value" 2 "takes no value" "$generate" $model x --graph=1
check "a prompt in parts, keys and values in pages" 0 "; 2 tokens written" \
    "$generate" $model "Once upon a time there was a king" --tokens 2 --batch 3 --page-size 16
check "the same text from one pass, from parts, from pages and from caches of 8 bits" 0 "^1$" sh -c \
    'for o in "--batch 512" "--batch 1" "--batch 4" "--page-size 16" "--cache q8_0" "--cache e4m3"; do
         "$1" "$2" "The king had a daughter" --tokens 2 $o 2>/dev/null; done | sort -u | wc -l | tr -d " "' \
    sh "$generate" $model
check "the prompt in parts of nothing" 2 "batch: '0' is no whole number from 1 to 4096" \
    "$generate" $model x --batch 0
check "the prompt in parts that are too large" 2 "batch: '4097' is no whole number from 1 to 4096" \
    "$generate" $model x --batch 4097
check "pages of another size" 2 "page-size: must be 0 or a power of two from 16" \
    "$generate" $model x --page-size 24
check "pages in the persistent kernel" 2 "takes no pages" "$generate" $model x --persistent --page-size 32
check "guesses of a smaller model: the same text" 0 "^1$" sh -c \
    'for o in "--graph" "--draft $2 --draft-tokens 2"; do
         "$1" "$2" "The king had a daughter" --tokens 4 $o 2>/dev/null; done | sort -u | wc -l | tr -d " "' \
    sh "$generate" $model
check "guesses are counted" 0 "2 of 2 guesses were right" \
    "$generate" $model "The king had a daughter" --tokens 4 --draft $model --draft-tokens 2
check "a stop word is not shown, nor what follows" 0 "^Once upon a time a$" \
    sh -c "\"\$1\" \"\$2\" 'Once upon a time' --stop ' man' --stop zebra --tokens 9 2>/dev/null" sh "$generate" $model
check "a chat by a template, with guesses, that reads nothing unwritten" 0 "^1$" sh -c \
    'echo And then | "$1" "$2" --chat "The king" --system Tales --template vicuna --tokens 2 --draft "$2" 2>&1 |
         grep -c "tokens written\|ptxsim:"' sh "$generate" $model
check "a chat whose standard input is closed" 1 "standard input: no message" \
    sh -c "\"\$1\" \"\$2\" --chat --template vicuna --tokens 1 <&-" sh "$generate" $model
check "a chat's answers are as many as its messages" 0 "^2$" sh -c \
    'printf "And then?\n\n" | "$1" "$2" --chat "The king" --template vicuna --tokens 1 2>/dev/null | wc -l |
        tr -d " "' \
    sh "$generate" $model
check "a stop word that is empty" 2 "stop: an empty text" "$generate" $model x --stop ""
cp $model "$build/rows.gguf"
at=$(grep -abo token_embd.weight $model | head -n 1 | cut -d : -f 1) # the name, u32 dimensions, u64 columns, u64 rows
printf '\320\007' | dd of="$build/rows.gguf" bs=1 seek=$((at + 17 + 4 + 8)) conv=notrunc 2>/dev/null
check "guesses of a model with fewer rows of embeddings" 1 "has 2000 rows, that of the model .* 2048" \
    "$generate" $model x --draft "$build/rows.gguf"
check "a model with fewer rows of embeddings than tokens" 1 "2048 tokens, and 'token_embd.weight' has 2000 rows" \
    "$generate" "$build/rows.gguf" x
rm -f "$build/rows.gguf"
check "a chat without a template" 1 "there is no 'tokenizer.chat_template': choose one by --template" \
    "$generate" $model --chat x
check "a template that is none" 2 "template: 'jinja' is none of phi4 chatml llama3" \
    "$generate" $model --chat x --template jinja
check "a template whose tokens the model lacks" 1 \
    "chats by the template 'llama3' need the token '<|start_header_id|>'" \
    "$generate" $model --chat x --template llama3
check "guesses without a smaller model" 2 "draft-tokens: goes with --draft" "$generate" $model x --draft-tokens 3
check "alternatives without a smaller model" 2 "draft-width: goes with --draft" "$generate" $model x --draft-width 3
check "too many guesses and alternatives" 2 "and --draft-tokens are 8 together at most" \
    "$generate" $model x --draft $model --draft-tokens 6 --draft-width 3
{ head -c 700000 $model && tail -c +700001 $model | LC_ALL=C tr A-Z z; } >"$build/odd.gguf"
check "guesses of another model, and alternatives" 0 "^1$" sh -c \
    'for o in "" "--draft $3 --draft-tokens 1 --draft-width 2"; do "$1" "$2" "The king" --tokens 3 $o 2>/dev/null; echo
     done | sort -u | grep -c .' sh "$generate" $model "$build/odd.gguf"
rm "$build/odd.gguf"
at=$(($(grep -abo general.name $model | head -n 1 | cut -d : -f 1) - 8)) # two keys, 89 bytes, become others
{ head -c $at $model && printf '\036\0\0\0\0\0\0\0llama.attention.sliding_window\004\0\0\0\004\0\0\0' &&
      printf '\014\0\0\0\0\0\0\0general.name\010\0\0\0\013\0\0\0\0\0\0\0fables-----' &&
      tail -c +$((at + 90)) $model; } >"$build/odd.gguf"
check "alternatives where attention has windows, told before the driver is opened" 1 \
    "^generate: --draft-width: the model's attention has windows" \
    env PTXGEN_CUDA_LIBRARY=/nowhere "$generate" "$build/odd.gguf" x --tokens 9 --draft $model --draft-width 2
check "alternatives in fewer positions than a window has" 0 "; 2 tokens written" \
    "$generate" "$build/odd.gguf" "" --tokens 2 --draft $model --draft-width 2
rm "$build/odd.gguf"
check "sequences without prompts" 2 "sequences: goes with --prompts" "$generate" $model x --sequences 3
check "a NUL in a message" 1 "standard input: line 2: holds a NUL" \
    sh -c 'printf "a\nb\000c\n" | "$1" "$2" --chat --template vicuna --tokens 1' sh "$generate" $model
check "a template without a chat" 2 "template: goes with --chat" "$generate" $model x --template llama3
printf 'The king\nOnce upon\\na time\nA\n' >"$build/prompts"
check "prompts of a file, two at a time" 0 "^a time" \
    "$generate" $model --prompts "$build/prompts" --sequences 2 --tokens 1
check "the same text alone and beside others" 0 "^1$" sh -c \
    'for o in 1 3; do "$1" "$2" --prompts "$3" --sequences $o --tokens 2 2>/dev/null | md5sum; done |
        sort -u | wc -l | tr -d " "' \
    sh "$generate" $model "$build/prompts"
printf '\n' >"$build/prompts"
check "the text behind an empty line does not begin with a space" 0 "^[^ ]" \
    sh -c "\"\$1\" \"\$2\" --prompts \"\$3\" --tokens 1 2>/dev/null | head -n 1" sh "$generate" $model "$build/prompts"
rm -f "$build/prompts"
printf 'The king\nA fox\000\n' >"$build/prompts"
check "a NUL in a file of prompts" 1 "prompts: line 2: holds a NUL" "$generate" $model --prompts "$build/prompts"
printf 'A\nThe king and the fox and the king again\nA fox\n' >"$build/prompts"
check "a long line in a file of prompts" 1 \
    "prompts: line 2: the prompt has 10 tokens, at most 3 fit into the context of 4; --context goes up to 512" \
    "$generate" $model --prompts "$build/prompts" --context 4
check "long lines in a file of prompts" 1 \
    "prompts: line 2, the longest of 2 that are too long: the prompt has 10 tokens, at most 2 fit" \
    "$generate" $model --prompts "$build/prompts" --context 3
rm -f "$build/prompts"
LC_ALL=C sed s/blk.1.ffn_up/blk.1.ffn_uq/ $model >"$build/odd.gguf"
check "a tensor that is missing, told before the driver is opened" 1 "there is no tensor 'blk.1.ffn_up.weight'" \
    env PTXGEN_CUDA_LIBRARY=/nowhere "$generate" "$build/odd.gguf" x
rm "$build/odd.gguf"
cp $model "$build/odd.gguf"
for number in '40 attention.head_count' '10 rope.dimension_count'; do # 32 heads of 8 elements
    at=$(grep -abo "llama.${number#* }" $model | head -n 1 | cut -d : -f 1)
    printf "\\${number% *}" | dd of="$build/odd.gguf" bs=1 seek=$((at + 30)) conv=notrunc 2>/dev/null
done
check "caches that the heads do not fit, told before the driver is opened" 1 \
    "odd.gguf: --cache: e4m3 takes multiples of 16, this model has heads of 8 elements" \
    env PTXGEN_CUDA_LIBRARY=/nowhere "$generate" "$build/odd.gguf" x --cache e4m3
check "caches that the heads of the smaller model do not fit" 1 "odd.gguf: --cache: e4m3 takes multiples of 16" \
    env PTXGEN_CUDA_LIBRARY=/nowhere "$generate" $model x --draft "$build/odd.gguf" --cache e4m3
rm "$build/odd.gguf"
check "a folder of prompts" 1 "tests: Is a directory" "$generate" $model --prompts tests
check "a file of prompts that is none" 1 "/nowhere: No such file" "$generate" $model --prompts /nowhere
check "a prompt beside a file of prompts" 2 "prompts: beside a prompt" "$generate" $model x --prompts /dev/null
check "guesses beside a graph" 2 "draft: beside --graph" "$generate" $model x --draft $model --graph
check "progress where it is asked for" 0 "; 1 tokens written" "$generate" $model x --tokens 1 --progress
check "caches of 8 bits in the persistent kernel" 2 "takes caches of f16" \
    "$generate" $model x --persistent --cache q8_0
check "more context than the model has" 0 "--context 513: $model has 512 positions, which are taken" \
    "$generate" $model "The king" --tokens 1 --context 513
check "no prompt" 2 "needed" "$generate" $model
check "no such model" 2 "No such file" "$generate" /nowhere/model.gguf x
check "a file that is no model" 2 "at byte 0: does not begin with GGUF" "$generate" README.md x
check "an empty file" 2 "at byte 0: an empty file" "$generate" /dev/null x
check "a folder" 2 "Is a directory" "$generate" tests x
if [ -w /dev/full ]; then
    check "text that goes nowhere" 1 "standard output: cannot be written" \
        sh -c "\"\$1\" \"\$2\" x --tokens 9 >/dev/full" sh "$generate" $model
fi
check "a part of a token" 2 "'1.9' is no whole number from 1 to" "$generate" $model x --tokens 1.9
check "tokens in another base" 2 "'0x3' is no whole number" "$generate" $model x --tokens 0x3
check "a temperature in another base" 2 "'0x1p-1' is no number" "$generate" $model x --temperature 0x1p-1
check "a blank before a number" 2 "' 3' is no whole number" "$generate" $model x --tokens ' 3'
check "zeros before a number" 0 "; 1 tokens written" "$generate" $model x --tokens 001 --temperature 1e-1
check "no tokens to write" 2 "'0' is no whole number" "$generate" $model x --tokens 0
check "a seed that a double has not" 2 "is no whole number from 0 to 9007199254740991" \
    "$generate" $model x --tokens 1 --seed 9007199254740993
check "too many tokens" 2 "'1e10' is no whole number" "$generate" $model x --tokens 1e10
check "a seed below 0" 2 "'-1' is no whole number" "$generate" $model x --seed -1
check "a probability past 1" 2 "'1.5' is no number from 0 to 1" "$generate" $model x --top-p 1.5
check "a temperature that is no number" 2 "'nan' is no number" "$generate" $model x --temperature nan
check "a number with more behind it" 2 "'5x' is no whole number" "$generate" $model x --top-k 5x
check "two ways at once" 2 "one of the two" "$generate" $model x --graph --persistent
check "two prompts" 2 "y: one argument too many, there are MODEL.gguf \"prompt\"; --help" "$generate" $model x y
check "an option with one dash" 2 "-t: unknown option, they begin with --; --help" "$generate" $model x -t 3
head -c 9999 $model >"$build/short.gguf"
check "a model that is cut short" 2 "at byte .*the file ends" "$generate" "$build/short.gguf" x
rm -f "$build/short.gguf"
check "a prompt past the context" 1 "has [0-9]* tokens, at most 2 fit into the context of 3; --context goes up to 512" \
    "$generate" $model "Once upon a time" --context 3
check "a prompt past the model" 1 "at most 511 fit into the context of 512; $model has no more positions" \
    "$generate" $model "$(printf 'king %.0s' $(seq 600))"
check "a chat past the context" 1 "the chat has 4[0-9] tokens, at most 19 fit into the context of 20; --context goes" \
    sh -c 'echo The king and the fox | "$1" "$2" --chat A --template vicuna --tokens 1 --context 20' sh \
    "$generate" $model
check "a temperature below 0" 2 "no number from 0" "$generate" $model x --temperature -1
check "an option without its number" 2 "tokens" "$generate" $model x --tokens
check "the list of kernels" 0 "flash_decode 0" "$build/ptxdump"
check "a kernel's text" 0 "visible .entry flash_decode" "$build/ptxdump" flash_decode 0 90
check "an unknown kernel" 2 "no kernel" "$build/ptxdump" nothing
check "an unknown example" 1 "no example" "$build/ptxdump" flash_decode 1000
check "an unknown target" 1 "sm_91" "$build/ptxdump" flash_decode 0 91
check "a target that is no number" 2 "target" "$build/ptxdump" flash_decode 0 x
PTXGEN_CUDA_LIBRARY=/nowhere/libcuda.so
check "a missing driver" 1 "/nowhere/libcuda.so" "$build/saxpy"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
